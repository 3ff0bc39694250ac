//! What a gateway tells an admin about its machine.

use serde_json::json;

/// The report message of the reference: a member that holds JSON as text.
///
/// Source: ShenYu 2.7.1, instance report over the websocket.
pub(super) fn text() -> String {
    json!({"bootstrapInstanceInfo": info()}).to_string()
}

/// What there is to tell, JSON text.
pub(super) fn info() -> String {
    let info = json!({
        "arch": std::env::consts::ARCH,
        "operatingSystem": std::env::consts::OS,
        "availableProcessors": std::thread::available_parallelism().map_or(1, usize::from),
        "totalMemorySizeGB": format!("{:.2}GB", memory_kib() as f64 / 1_048_576.0),
    });
    info.to_string()
}

/// The machine's memory; 0 where the system does not tell.
fn memory_kib() -> u64 {
    std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_is_text_inside_text_and_small() {
        let report = super::text();
        assert!(report.len() < 8 * 1024);
        let outer: serde_json::Value = serde_json::from_str(&report).unwrap();
        let inner = outer["bootstrapInstanceInfo"].as_str().unwrap();
        let inner: serde_json::Value = serde_json::from_str(inner).unwrap();
        assert!(inner["availableProcessors"].as_u64().unwrap() >= 1);
        assert!(inner["totalMemorySizeGB"].as_str().unwrap().ends_with("GB"));
    }
}
