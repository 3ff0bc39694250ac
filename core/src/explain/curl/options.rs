//! The options of curl.

/// What an option means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing.
    Nothing,
    /// Nothing, and a value follows.
    NothingWithValue,
    /// The line cannot be explained; what was expected instead.
    Refused(&'static str),
    Method,
    Address,
    Header,
    /// Data, or the name of a file.
    Data,
    /// The same as it is.
    Binary,
    /// Data that never is the name of a file.
    RawData,
    EncodedData,
    /// Data for the query.
    Query,
    Json,
    Form,
    Upload,
    Cookie,
    Agent,
    Referer,
    User,
    Bearer,
    Get,
    Head,
    Compressed,
    PathAsIs,
    NoGlobs,
}

use Meaning::{
    Address, Agent, Bearer, Binary, Compressed, Cookie, Data, EncodedData, Form, Get, Head, Header,
    Json, Method, NoGlobs, Nothing, NothingWithValue, PathAsIs, Query, RawData, Referer, Refused,
    Upload, User,
};

impl Meaning {
    pub(super) const fn takes_value(self) -> bool {
        !matches!(self, Nothing | Refused(_) | Get | Head | Compressed | PathAsIs | NoGlobs)
    }
}

const SEVERAL: &str = "one request: explain them one by one";
const FILE: &str = "in the line itself: what a file adds to it is not known here";

/// What has a meaning, with its letter.
const WITH_MEANING: [(Option<char>, &str, Meaning); 29] = [
    (Some('X'), "request", Method),
    (None, "url", Address),
    (Some('H'), "header", Header),
    (Some('d'), "data", Data),
    (None, "data-ascii", Data),
    (None, "data-binary", Binary),
    (None, "data-raw", RawData),
    (None, "data-urlencode", EncodedData),
    (None, "url-query", Query),
    (None, "json", Json),
    (Some('F'), "form", Form),
    (None, "form-string", Form),
    (Some('T'), "upload-file", Upload),
    (Some('b'), "cookie", Cookie),
    (Some('A'), "user-agent", Agent),
    (Some('e'), "referer", Referer),
    (Some('u'), "user", User),
    (None, "oauth2-bearer", Bearer),
    (Some('G'), "get", Get),
    (Some('I'), "head", Head),
    (None, "compressed", Compressed),
    (None, "path-as-is", PathAsIs),
    (Some('g'), "globoff", NoGlobs),
    (Some('K'), "config", Refused(FILE)),
    (Some(':'), "next", Refused(SEVERAL)),
    (Some('h'), "help", Refused("a request")),
    (Some('V'), "version", Refused("a request")),
    (Some('Z'), "parallel", Nothing),
    (Some('q'), "disable", Nothing),
];

/// Without a meaning here.
const FLAGS: [(Option<char>, &str); 31] = [
    (Some('k'), "insecure"),
    (Some('s'), "silent"),
    (Some('S'), "show-error"),
    (Some('v'), "verbose"),
    (Some('i'), "include"),
    (None, "show-headers"),
    (Some('L'), "location"),
    (None, "location-trusted"),
    (Some('f'), "fail"),
    (None, "fail-with-body"),
    (None, "fail-early"),
    (Some('#'), "progress-bar"),
    (None, "no-progress-meter"),
    (Some('N'), "no-buffer"),
    (Some('O'), "remote-name"),
    (Some('J'), "remote-header-name"),
    (Some('R'), "remote-time"),
    (Some('j'), "junk-session-cookies"),
    (Some('0'), "http1.0"),
    (None, "http1.1"),
    (None, "http2"),
    (None, "http2-prior-knowledge"),
    (None, "http3"),
    (Some('1'), "tlsv1"),
    (None, "tlsv1.2"),
    (None, "tlsv1.3"),
    (Some('4'), "ipv4"),
    (Some('6'), "ipv6"),
    (None, "tcp-nodelay"),
    (None, "basic"),
    (None, "raw"),
];

/// The same with a value behind.
const SETTINGS: [(Option<char>, &str); 28] = [
    (Some('o'), "output"),
    (None, "output-dir"),
    (Some('D'), "dump-header"),
    (Some('c'), "cookie-jar"),
    (Some('w'), "write-out"),
    (Some('m'), "max-time"),
    (None, "connect-timeout"),
    (None, "connect-to"),
    (None, "resolve"),
    (None, "interface"),
    (None, "keepalive-time"),
    (None, "limit-rate"),
    (None, "max-redirs"),
    (None, "retry"),
    (None, "retry-delay"),
    (None, "retry-max-time"),
    (Some('x'), "proxy"),
    (Some('U'), "proxy-user"),
    (None, "noproxy"),
    (None, "cacert"),
    (None, "capath"),
    (Some('E'), "cert"),
    (None, "key"),
    (None, "ciphers"),
    (None, "unix-socket"),
    (None, "stderr"),
    (None, "trace"),
    (None, "trace-ascii"),
];

/// The option of that name.
pub(super) fn find_long(name: &str) -> Option<Meaning> {
    find(|_, long| long == name)
}

/// The option with that letter.
pub(super) fn find_short(letter: char) -> Option<Meaning> {
    find(|short, _| short == Some(letter))
}

fn find(is: impl Fn(Option<char>, &str) -> bool) -> Option<Meaning> {
    let known = WITH_MEANING.into_iter();
    let flags = FLAGS.into_iter().map(|(short, long)| (short, long, Nothing));
    let settings = SETTINGS.into_iter().map(|(short, long)| (short, long, NothingWithValue));
    let mut all = known.chain(flags).chain(settings);
    all.find(|(short, long, _)| is(*short, long)).map(|(.., meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::{FLAGS, SETTINGS, WITH_MEANING};

    #[test]
    fn no_option_is_listed_twice() {
        let known = WITH_MEANING.into_iter().map(|(short, long, _)| (short, long));
        let all: Vec<_> = known.chain(FLAGS).chain(SETTINGS).collect();
        for (at, (short, long)) in all.iter().enumerate() {
            let twice = all[..at].iter().any(|(s, l)| l == long || (s.is_some() && s == short));
            assert!(!twice, "{long}");
        }
    }
}
