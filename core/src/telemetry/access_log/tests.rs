use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode, Version};

use super::{AccessLog, AccessLogOptions, Line, LineFormat};
use crate::chain::{Completion, Connection, Edge, Observed, Outcome};
use crate::error::Reason;

fn completion() -> Completion {
    let mut completion = Completion::empty();
    completion.readable = true;
    completion.target = "/a?token=x&b=1".parse().unwrap();
    completion.outcome = Outcome::Finished;
    completion.status = Some(StatusCode::OK);
    completion.elapsed = Duration::from_micros(1500);
    completion.head_elapsed = Some(Duration::from_micros(1200));
    completion.request_bytes = 3;
    completion.response_bytes = 13;
    completion
}

fn observed() -> Observed {
    let any = "10.0.0.1:5".parse().unwrap();
    Observed {
        connection: Arc::new(Connection::new(any, any, Arc::new(Edge::default()))),
        client: Some("2001:db8::7".parse().unwrap()),
        request_id: Some(HeaderValue::from_static("id-1")),
        version: Version::HTTP_2,
    }
}

fn formatted(completion: &Completion, format: LineFormat) -> String {
    let observed = observed();
    String::from_utf8(Line { completion, observed: &observed }.format(format)).unwrap()
}

#[test]
fn json_lines_have_all_fields_in_their_units() {
    let line = formatted(&completion(), LineFormat::Json);
    assert!(line.ends_with("}\n"));
    let mut line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let time = line["time"].take();
    let time = time.as_str().unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok() && time.len() == 24, "{time}");
    let expected = serde_json::json!({
        "time": null, "client": "2001:db8::7", "method": "GET", "target": "/a?token=***&b=1",
        "protocol": "HTTP/2.0", "status": 200, "outcome": "finished", "reason": null,
        "upstream": null, "attempts": 0, "notRetried": null, "totalUs": 1500, "headUs": 1200, "upstreamUs": null,
        "bytesIn": 3, "bytesOut": 13, "requestId": "id-1",
    });
    assert_eq!(line, expected);
}

#[test]
fn text_lines_say_the_same() {
    let mut completion = completion();
    completion.reason = Some(Reason::ClientGone);
    completion.outcome = Outcome::ClientGone;
    completion.status = None;
    let line = formatted(&completion, LineFormat::Text);
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert_eq!(
        rest,
        "2001:db8::7 \"GET /a?token=***&b=1 HTTP/2.0\" - outcome=client_gone reason=client_gone \
         upstream=- attempts=0 not_retried=- total_us=1500 head_us=1200 upstream_us=- in=3 out=13 id=id-1\n"
    );
}

#[test]
fn every_line_is_written_or_counted_as_dropped() {
    let folder = std::env::temp_dir().join(format!("longmen-access-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("access.log");
    let _ = std::fs::remove_file(&path);
    let options =
        AccessLogOptions { format: LineFormat::Json, path: Some(path.clone()), queue: 16 };
    let log = AccessLog::start(options).unwrap();
    let figures = log.figures();
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let lines = log.worker();
            std::thread::spawn(move || {
                let (completion, observed) = (completion(), observed());
                for _ in 0..2000 {
                    lines.write(&Line { completion: &completion, observed: &observed });
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    log.close();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    assert_eq!(text.lines().count() as u64, figures.written());
    assert_eq!(figures.written() + figures.dropped(), 6000);
    assert!(figures.dropped() > 0, "16 places do not hold 2000 lines written at once");
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let path = Some("/nowhere/at/all/access.log".into());
    let options = AccessLogOptions { format: LineFormat::Text, path, queue: 1 };
    let error = AccessLog::start(options).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all/access.log"), "{error}");
}
