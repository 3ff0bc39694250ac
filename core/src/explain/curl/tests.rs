use std::net::IpAddr;

use super::parse;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Method, target, headers in order of name, body.
fn told(line: &str) -> String {
    let request = parse(line, PEER).unwrap_or_else(|fault| panic!("{line}: {fault}"));
    let mut headers: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_bytes())))
        .filter(|line| line != "accept=*/*" && line != "user-agent=curl/8")
        .collect();
    headers.sort_unstable();
    let body = String::from_utf8_lossy(&request.body).into_owned();
    format!("{} {} [{}] {body}", request.method, request.uri, headers.join(" | "))
}

#[test]
fn lines_become_the_request_that_curl_would_send() {
    for (line, expected) in [
        ("curl http://gw:9195/a?b=1", "GET /a?b=1 [host=gw:9195] "),
        ("curl gw", "GET / [host=gw] "),
        ("/usr/bin/curl -sSkL -o /dev/null 'https://gw/a#part'", "GET /a [host=gw] "),
        ("curl -XPUT http://gw/a", "PUT /a [host=gw] "),
        ("curl -X DELETE --url http://gw/a", "DELETE /a [host=gw] "),
        ("curl -I http://gw/a", "HEAD /a [host=gw] "),
        (
            "curl http://gw/a -H 'X-Canary: 2' -H Host:other -H 'X-Empty;' -HX-Short:1",
            "GET /a [host=other | x-canary=2 | x-empty= | x-short=1] ",
        ),
        (
            "curl http://gw/a -d a=1 --data-raw @b --data-urlencode 'c=d e&f'",
            "POST /a [content-length=18 | content-type=application/x-www-form-urlencoded | host=gw] \
             a=1&@b&c=d%20e%26f",
        ),
        (
            r#"curl --json '{"a":1}' http://gw/a"#,
            "POST /a [accept=application/json | content-length=7 | content-type=application/json | \
             host=gw] {\"a\":1}",
        ),
        (
            "curl -d x -H 'Content-Type: text/plain' http://gw/a",
            "POST /a [content-length=1 | content-type=text/plain | host=gw] x",
        ),
        ("curl -G -d a=1 -d b=2 'http://gw/a?c=3'", "GET /a?c=3&a=1&b=2 [host=gw] "),
        ("curl http://gw/a -b a=1 -b 'b=2; c=3'", "GET /a [cookie=a=1; b=2; c=3 | host=gw] "),
        ("curl -u me:pass gw/a", "GET /a [authorization=Basic bWU6cGFzcw== | host=gw] "),
        ("curl http://me:pass@gw/a", "GET /a [authorization=Basic bWU6cGFzcw== | host=gw] "),
        ("curl --oauth2-bearer T gw/a", "GET /a [authorization=Bearer T | host=gw] "),
        (
            "curl -A Mozilla -e http://from/ --compressed gw/a",
            "GET /a [accept-encoding=deflate, gzip, br, zstd | host=gw | referer=http://from/ | \
             user-agent=Mozilla] ",
        ),
        ("curl gw/a/./b/../c/..", "GET /a/ [host=gw] "),
        ("curl --path-as-is gw/a/../b", "GET /a/../b [host=gw] "),
        ("curl -g 'gw/{a}'", "GET /{a} [host=gw] "),
        ("curl 'http://[::1]:9195/a'", "GET /a [host=[::1]:9195] "),
        (
            // As a browser copies it.
            "curl 'http://gw/a' \\\n  -H 'accept: text/html' \\\n  --data-raw $'it\\'s' \\\n  \
             --insecure",
            "POST /a [accept=text/html | content-length=4 | \
             content-type=application/x-www-form-urlencoded | host=gw] it's",
        ),
        ("curl -X PATCH -T file gw/a", "PATCH /a [host=gw] "),
        ("curl -F a=@b gw/a", "POST /a [content-type=multipart/form-data | host=gw] "),
        ("curl /a", "GET /a [host=localhost] "),
    ] {
        assert_eq!(told(line), expected, "{line}");
    }
}

#[test]
fn headers_of_curl_itself_can_be_taken_away() {
    let request = parse("curl -A '' -H 'Accept:' gw/a", PEER).unwrap();
    assert_eq!(request.headers.len(), 1, "{:?}", request.headers);
    let request = parse("curl -d @file -F x=1 gw/a", PEER).unwrap();
    assert_eq!(request.remarks.len(), 2, "{:?}", request.remarks);
}

#[test]
fn faults_point_at_the_argument() {
    for (line, expected) in [
        ("", "curl, character 1: nothing is not a curl line, such as curl http://host/path"),
        ("wget gw", "curl, character 1: wget is not the word curl, which begins it"),
        (
            "curl -s",
            "curl, character 1: nothing is not an address after curl, such as http://host/path",
        ),
        ("curl gw -H", "curl, character 9: -H is not an option with its value behind it"),
        ("curl gw -H nothing", "curl, character 12: nothing is not a header such as Name: value"),
        ("curl gw -H 'a b: c'", "curl, character 12: a b is not the name of a header"),
        ("curl gw -sY", "curl, character 9: -Y is not an option of curl that is known here"),
        ("curl gw --frob", "curl, character 9: --frob is not an option of curl that is known here"),
        ("curl gw -X 'GE T'", "curl, character 12: GE T is not a method such as GET"),
        (
            "curl gw other",
            "curl, character 9: other is not the only address: one request can be explained at a \
             time",
        ),
        (
            "curl gw/{a,b}",
            "curl, character 6: gw/{a,b} is not one address: curl makes several of it, and takes it \
             as it is with -g",
        ),
        (
            "curl 'http://gw/a b'",
            "curl, character 6: http://gw/a b is not an address such as http://host/path?query, \
             percent-encoded",
        ),
        (
            "curl ftp://gw/a",
            "curl, character 6: ftp://gw/a is not an address with http:// or https://, or a path \
             with /",
        ),
        (
            "curl gw --next gw",
            "curl, character 9: --next is not one request: explain them one by one",
        ),
    ] {
        assert_eq!(parse(line, PEER).unwrap_err().to_string(), expected, "{line}");
    }
    // A secret is not repeated.
    let fault = parse("curl gw -H $'Authorization: Bearer\\x01'", PEER).unwrap_err();
    assert!(fault.to_string().contains(": ****** is not the value of a header"), "{fault}");
}
