//! The page that shows what proxies make of the same odd requests, side by side.

use std::fmt::Write as _;

use super::{OddRequest, Outcome};
use crate::raw::head_lines;

/// More characters than this of one text are not shown.
const MAX_SHOWN: usize = 160;

/// Headers that a proxy sends with every request and that say nothing of it.
const USUAL: [&str; 3] = ["host: <upstream>", "host: odd.test", "connection: close"];

/// One column: a proxy's name and version, and its outcomes in the order of the requests.
#[derive(Debug, Clone)]
pub struct Column {
    /// As its heading.
    pub name: String,
    /// One for each request.
    pub outcomes: Vec<Outcome>,
}

/// The page in Markdown: a table for each group of requests.
#[must_use]
pub fn render(requests: &[OddRequest], columns: &[Column]) -> String {
    let mut out = String::new();
    for (group, title) in
        [("target", "Request targets"), ("header", "Headers"), ("framing", "Framing")]
    {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let _ = write!(out, "\n## {title}\n\n| | sent | {} |\n|---|---|", names.join(" | "));
        out.push_str(&"---|".repeat(columns.len()));
        out.push('\n');
        for (at, request) in requests.iter().enumerate().filter(|(_, r)| r.group == group) {
            let _ = write!(out, "| {} | {} |", request.name, code(&sent(request)));
            for column in columns {
                let _ = write!(out, " {} |", cell(&column.outcomes[at]));
            }
            out.push('\n');
        }
    }
    out
}

/// What is odd about a request: its line, or what follows it.
fn sent(request: &OddRequest) -> String {
    let lines: Vec<String> = head_lines(&request.sent).map(printable).collect();
    match request.group.as_str() {
        "target" => lines.into_iter().next().unwrap_or_default(),
        "header" => lines.into_iter().skip(1).collect::<Vec<_>>().join("⏎"),
        _ => printable(&request.sent),
    }
}

fn cell(outcome: &Outcome) -> String {
    let mut shown: Vec<String> =
        outcome.upstream.iter().map(|received| code(&essence(received))).collect();
    let statuses: Vec<String> = outcome.statuses.iter().map(u16::to_string).collect();
    let all_served = !shown.is_empty() && outcome.statuses.iter().all(|status| *status == 200);
    if !all_served || outcome.closed {
        let closed = if outcome.closed { ", closed" } else { "" };
        let statuses = if statuses.is_empty() { "no answer".into() } else { statuses.join(" ") };
        shown.insert(0, format!("{statuses}{closed}"));
    }
    shown.join(" ")
}

/// The request line, unusual headers and the body.
fn essence(received: &[u8]) -> String {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = received.split_at(end.map_or(received.len(), |end| end + 4));
    let mut lines: Vec<String> = head_lines(head)
        .map(printable)
        .filter(|line| !USUAL.contains(&line.to_ascii_lowercase().as_str()))
        .collect();
    if !body.is_empty() {
        lines.push(format!("⏎{}", printable(body)));
    }
    lines.join("⏎")
}

/// Line ends as signs, with or without CR; other bytes that cannot be shown as escapes.
fn printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {}
            b'\n' => out.push('⏎'),
            0x20..=0x7e => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out
}

fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let shown = shown.replace('|', "\\|");
    if shown.contains('`') { format!("`` {shown} ``") } else { format!("`{shown}`") }
}
