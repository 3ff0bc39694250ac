//! The page that documents all keys, made from the tables.

use std::fmt::Write as _;

use super::schema::{KeySpec, Schema, Status};

/// What stands before and after the chapter of a binary in the page.
fn marks(schema: &Schema) -> (String, String) {
    let name = schema.name.to_lowercase();
    (format!("<!-- {name}: made from the table of keys -->\n"), format!("<!-- {name}: end -->\n"))
}

/// Puts the chapter of one binary into `page`, in place of the one between its marks, or at the
/// end where there is none.
pub fn with_chapter(page: &str, schema: &Schema) -> String {
    let (begin, end) = marks(schema);
    let chapter = chapter(schema);
    let old = page.find(&begin).and_then(|from| {
        let to = page[from..].find(&end)?;
        Some((from, from + to + end.len()))
    });
    match old {
        Some((from, to)) => format!("{}{begin}\n{chapter}\n{end}{}", &page[..from], &page[to..]),
        None => format!("{}\n\n{begin}\n{chapter}\n{end}", page.trim_end()),
    }
}

/// Compares the page at `path` with the tables: for the test of a binary.
///
/// With the variable `LONGMEN_UPDATE_DOCS` set it writes the page instead.
///
/// # Panics
/// When the page cannot be read or written, or its chapter differs from the table.
#[cfg(any(test, feature = "test-util"))]
pub fn check_page(path: impl AsRef<std::path::Path>, schema: &Schema) {
    let path = path.as_ref();
    let page = std::fs::read_to_string(path).expect("the page exists");
    let fresh = with_chapter(&page, schema);
    if std::env::var_os("LONGMEN_UPDATE_DOCS").is_some() {
        std::fs::write(path, &fresh).expect("the page can be written");
        return;
    }
    let differs = page.lines().zip(fresh.lines()).find(|(have, want)| have != want);
    assert!(
        page == fresh,
        "{} is not what the table of the {} says; run the test with LONGMEN_UPDATE_DOCS=1. \
         First difference: {differs:?}",
        path.display(),
        schema.name
    );
}

/// Writes the chapter of one binary: a table of its keys for each section, in Markdown.
pub fn chapter(schema: &Schema) -> String {
    let mut out = format!("## {}\n", schema.name);
    for section in schema.sections {
        let _ = write!(out, "\n### {}\n\n", section.title);
        if !section.about.is_empty() {
            let _ = write!(out, "{}\n\n", section.about);
        }
        let used: Vec<&KeySpec> =
            section.keys.iter().filter(|spec| matches!(spec.status, Status::Used)).collect();
        if !used.is_empty() {
            out.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
            for spec in &used {
                row(&mut out, spec);
            }
        }
        rest(&mut out, section.keys, !used.is_empty());
    }
    out
}

fn row(out: &mut String, spec: &KeySpec) {
    let default = match (spec.default_note, spec.default) {
        ("", "") => "–".to_owned(),
        ("", default) => format!("`{}`", cell(default)),
        (note, _) => cell(note),
    };
    let mut meaning = cell(spec.meaning);
    if !spec.aliases.is_empty() {
        let names: Vec<String> = spec.aliases.iter().map(|name| format!("`{name}`")).collect();
        let _ = write!(meaning, " Also read: {}.", names.join(", "));
    }
    let kind = cell(&spec.kind.label());
    let _ = writeln!(out, "| `{}` | {kind} | {default} | {meaning} |", spec.path);
}

/// The keys that are known but do nothing, as a list.
fn rest(out: &mut String, keys: &[KeySpec], after_table: bool) {
    let lines: Vec<String> = keys
        .iter()
        .filter_map(|spec| match spec.status {
            Status::Used => None,
            Status::Inert(why) => {
                Some(format!("- `{}`: accepted, no meaning here ({why})", spec.path))
            }
            Status::Pending(what) => Some(format!(
                "- `{}`: not acted on by this version, with a warning ({what})",
                spec.path
            )),
            Status::Refused(why) => Some(format!("- `{}`: stops the start ({why})", spec.path)),
        })
        .collect();
    if !lines.is_empty() {
        if after_table {
            out.push('\n');
        }
        out.push_str(&lines.join("\n"));
        out.push('\n');
    }
}

/// Keeps a text inside its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
