//! What a polling gateway says. No I/O here.

use http::{HeaderMap, HeaderValue};
use longmen_core::model::{DEFAULT_NAMESPACE, MAX_ID_BYTES};
use longmen_core::sync::{
    Group, INSTANCE_HEADER, NEGOTIATION_HEADER, NEGOTIATION_VERSION, POLL_INFO_HEADER,
    POLL_PORT_HEADER,
};

use super::super::handshake;
use super::answer::Refusal;
use crate::extract::QueryArgs;
use crate::serve::Peer;

/// The most bytes that are kept of what a gateway tells about its machine, and of its name.
const MAX_INFO_BYTES: usize = 8 * 1024;

/// What a gateway has of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// The digest of its objects.
    pub(super) md5: String,
    /// The time of that state, as the admin that gave it said; `None` if it is no number.
    pub(super) modified: Option<i64>,
}

/// What a gateway has, group by group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known(Vec<(Group, Held)>);

impl Known {
    /// Reads one parameter for each group: its digest, a comma, its time.
    ///
    /// Only the group that gateways up to 2.6.1 do not know may be missing; they do not want it.
    ///
    /// # Errors
    /// Another group is missing, or one is not of that form.
    pub(super) fn read(args: &QueryArgs) -> Result<Self, Refusal> {
        let mut known = Vec::with_capacity(Group::ALL.len());
        for group in Group::ALL {
            let Some(given) = args.raw(group.name()) else {
                if group == Group::AiProxyApiKey {
                    continue;
                }
                return Err(Refusal::Known(None));
            };
            let held = match given.split_once(',') {
                Some((md5, time)) if !time.contains(',') => {
                    Held { md5: md5.to_owned(), modified: time.parse().ok() }
                }
                _ => return Err(Refusal::Known(Some(given.to_owned()))),
            };
            known.push((group, held));
        }
        Ok(Self(known))
    }

    /// Group by group, in the reference's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Group, &Held)> {
        self.0.iter().map(|(group, held)| (*group, held))
    }

    /// How many groups the gateway wants.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// The namespace; gateways up to 2.6.1 name none and get the default one.
pub(super) fn namespace(args: &QueryArgs) -> String {
    args.filled("namespaceId").unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
}

/// The groups that are to be fetched, repeated or joined by commas, each once.
///
/// # Errors
/// One that is none, or none at all.
pub(super) fn groups(args: &QueryArgs) -> Result<Vec<Group>, Refusal> {
    let mut groups = Vec::new();
    let values = args.pairs().filter(|(name, _)| *name == "groupKeys").map(|(_, value)| value);
    for name in values.flat_map(|value| value.split(',')).filter(|name| !name.is_empty()) {
        let group = Group::from_name(name).ok_or_else(|| Refusal::UnknownGroup(name.to_owned()))?;
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    if groups.is_empty() { Err(Refusal::NoGroup) } else { Ok(groups) }
}

/// Whether the caller understands our additions.
pub(super) fn is_ours(headers: &HeaderMap) -> bool {
    headers.get(NEGOTIATION_HEADER).map(HeaderValue::as_bytes)
        == Some(NEGOTIATION_VERSION.as_bytes())
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// Its host.
    pub(super) host: String,
    /// The port it serves on.
    pub(super) port: u16,
    /// What it calls itself, and its own count of its sessions; gateways of ours say so.
    pub(super) instance: Option<(String, i64)>,
    /// What it tells about its machine.
    pub(super) info: Option<String>,
    /// Whether it understands our additions.
    pub(super) ours: bool,
}

/// Reads who asks; `None` for one that does not want to be listed, by naming no port or 0.
pub(super) fn caller(headers: &HeaderMap, peer: Option<Peer>, ours: bool) -> Option<Caller> {
    let text = |name: &str, limit: usize| {
        let value = headers.get(name)?.to_str().ok()?;
        (!value.is_empty() && value.len() <= limit).then(|| value.to_owned())
    };
    let port: u16 = text(POLL_PORT_HEADER, 5)?.parse().ok().filter(|port| *port != 0)?;
    let host = peer.map_or_else(String::new, |peer| peer.0.ip().to_canonical().to_string());
    let instance = text(INSTANCE_HEADER, MAX_ID_BYTES).filter(|_| ours);
    let instance = instance.as_deref().and_then(handshake::instance);
    Some(Caller { host, port, instance, info: text(POLL_INFO_HEADER, MAX_INFO_BYTES), ours })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(skip: Option<&str>, rule: &str) -> QueryArgs {
        let pairs = Group::ALL.iter().map(|group| group.name()).filter(|name| Some(*name) != skip);
        let texts: Vec<String> = pairs
            .map(|name| format!("{name}={}", if name == "RULE" { rule } else { "abc,1" }))
            .collect();
        QueryArgs::parse(texts.join("&").as_bytes())
    }

    #[test]
    fn a_question_names_every_group_but_the_newest() {
        assert_eq!(Known::read(&question(None, "abc,1")).unwrap().len(), 8);
        assert_eq!(Known::read(&question(Some("AI_PROXY_API_KEY"), "abc,1")).unwrap().len(), 7);
        let missing = Known::read(&question(Some("SELECTOR"), "abc,1")).unwrap_err();
        assert!(matches!(missing, Refusal::Known(None)), "{missing:?}");
    }

    #[test]
    fn a_group_has_exactly_one_comma_and_a_time_that_may_be_no_number() {
        for wrong in ["abc", "abc,1,2", ""] {
            let refusal = Known::read(&question(None, wrong)).unwrap_err();
            assert!(matches!(refusal, Refusal::Known(Some(given)) if given == wrong));
        }
        let known = Known::read(&question(None, "abc,x")).unwrap();
        let (_, rule) = known.iter().find(|(group, _)| *group == Group::Rule).unwrap();
        assert_eq!((rule.md5.as_str(), rule.modified), ("abc", None));
    }

    #[test]
    fn groups_are_repeated_or_joined() {
        let read = |query: &str| groups(&QueryArgs::parse(query.as_bytes()));
        let both = [Group::Rule, Group::Selector];
        assert_eq!(read("groupKeys=RULE&groupKeys=SELECTOR").unwrap(), both);
        assert_eq!(read("groupKeys=RULE,SELECTOR,RULE").unwrap(), both);
        assert!(
            matches!(read("groupKeys=NOPE"), Err(Refusal::UnknownGroup(name)) if name == "NOPE")
        );
        assert!(matches!(read("namespaceId=x"), Err(Refusal::NoGroup)));
    }

    #[test]
    fn who_names_no_port_is_not_listed() {
        let with = |port: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-real-port", HeaderValue::from_static(port));
            let peer = Peer("127.0.0.1:4000".parse().unwrap());
            caller(&headers, Some(peer), false).map(|caller| (caller.host, caller.port))
        };
        assert_eq!(with("9195"), Some(("127.0.0.1".to_owned(), 9195)));
        assert_eq!((with("0"), with("many")), (None, None));
    }
}
