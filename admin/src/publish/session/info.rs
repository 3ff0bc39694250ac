//! The report of a gateway about its machine.

/// What a gateway said of its machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// The JSON text inside the report.
    pub(super) text: String,
    /// As the reference stores it: the member's own JSON, a text with its quotes.
    pub(super) as_stored: String,
}

/// The text inside a gateway's report about its machine; it may also be an object.
pub(super) fn instance_info(text: &str) -> Option<Info> {
    const MEMBER: &str = "bootstrapInstanceInfo";
    if !text.contains(MEMBER) {
        return None;
    }
    let mut report: serde_json::Value = serde_json::from_str(text).ok()?;
    match report.get_mut(MEMBER)?.take() {
        serde_json::Value::String(text) => {
            let as_stored = serde_json::Value::String(text.clone()).to_string();
            Some(Info { text, as_stored })
        }
        info @ serde_json::Value::Object(_) => {
            Some(Info { text: info.to_string(), as_stored: info.to_string() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_as_text_or_object() {
        for (text, info) in [
            (r#"{"bootstrapInstanceInfo":"{\"arch\":\"amd64\"}"}"#, Some(r#"{"arch":"amd64"}"#)),
            (r#"{"bootstrapInstanceInfo":{"arch":"amd64"}}"#, Some(r#"{"arch":"amd64"}"#)),
            (r#"{"bootstrapInstanceInfo":7}"#, None),
            ("bootstrapInstanceInfo", None),
            (r#"{"other":"bootstrapInstanceInfo"}"#, None),
            ("HELLO", None),
        ] {
            assert_eq!(instance_info(text).map(|info| info.text).as_deref(), info, "{text}");
        }
    }
}
