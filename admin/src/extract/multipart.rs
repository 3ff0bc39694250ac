//! Reading `multipart/form-data` that is already in memory.

/// The fields of a multipart body, in order; files count as fields of their text.
///
/// `None` when the content type is another, or names no boundary. A part without a name is left
/// out; a body that breaks off ends the list. Bytes that are no UTF-8 are replaced.
pub(super) fn fields(content_type: &str, body: &[u8]) -> Option<Vec<(String, String)>> {
    let (media_type, parameters) = content_type.split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    let mut delimiter = b"--".to_vec();
    delimiter.extend_from_slice(boundary.as_bytes());
    let mut fields = Vec::new();
    let mut rest = after(body, &delimiter)?;
    // What follows a delimiter is a line end and a part, or `--` at the end.
    while let Some(part_start) = rest.strip_prefix(b"\r\n") {
        let mut line_and_delimiter = b"\r\n".to_vec();
        line_and_delimiter.extend_from_slice(&delimiter);
        let Some(end) = find(part_start, &line_and_delimiter) else { break };
        fields.extend(part(&part_start[..end]));
        rest = &part_start[end + line_and_delimiter.len()..];
    }
    Some(fields)
}

/// Name and content of one part.
fn part(part: &[u8]) -> Option<(String, String)> {
    let (head, content) = match part.strip_prefix(b"\r\n") {
        Some(content) => (&b""[..], content),
        None => {
            let end = find(part, b"\r\n\r\n")?;
            (&part[..end], &part[end + 4..])
        }
    };
    let head = String::from_utf8_lossy(head);
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let (_, parameters) = disposition.split_once(';')?;
    let name = parameter(parameters, "name")?;
    Some((name, String::from_utf8_lossy(content).into_owned()))
}

/// The value of `name` in `a=b; c="d"`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    parameters.split(';').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
        key.trim().eq_ignore_ascii_case(name).then(|| value.to_owned())
    })
}

fn after<'a>(text: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    find(text, needle).map(|at| &text[at + needle.len()..])
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::fields;

    const TYPE: &str = "multipart/form-data; boundary=----x";

    #[test]
    fn parts_become_fields() {
        let body = b"------x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nmine\r\n\
            ------x\r\ncontent-disposition: form-data; name=config\r\nContent-Type: text/plain\r\n\
            \r\n{\"a\":\r\n1}\r\n------x\r\nContent-Disposition: form-data; name=\"file\"; \
            filename=\"a.jar\"\r\n\r\n\r\n------x--\r\n";
        let read = fields(TYPE, body).unwrap();
        let read: Vec<_> = read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(read, [("name", "mine"), ("config", "{\"a\":\r\n1}"), ("file", "")]);
    }

    #[test]
    fn broken_bodies_end_early() {
        for (content_type, body, wanted) in [
            ("application/json", &b"{}"[..], None),
            ("multipart/form-data", b"", None),
            (TYPE, b"", None),
            (TYPE, b"------x--\r\n", Some(0)),
            (TYPE, b"------x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncut", Some(0)),
            (TYPE, b"------x\r\nno head\r\n------x--", Some(0)),
        ] {
            let read = fields(content_type, body).map(|fields| fields.len());
            assert_eq!(read, wanted, "{content_type} {}", String::from_utf8_lossy(body));
        }
    }
}
