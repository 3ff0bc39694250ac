//! Reading what admins answer. No I/O here.

use std::collections::HashMap;

use http::StatusCode;
use longmen_core::sync::{BadObject, Group, Payload, decode_group};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::Answer;

/// The most that is quoted of what an admin says.
const MAX_QUOTED: usize = 200;

/// Why an answer is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// The token is missing, over or not good.
    #[error("the admin does not take the token")]
    Token,
    /// It says why not.
    #[error("the admin answered {0} with code {1}: {2}")]
    Refused(StatusCode, i64, String),
    /// It is no answer of an admin.
    #[error("the admin answered {0}, and no JSON that can be read: {1}")]
    Unreadable(StatusCode, #[source] serde_json::Error),
}

/// Where an admin of ours says that its answer stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Stand {
    pub(super) epoch: String,
    pub(super) version: u64,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    longmen: Option<Stand>,
}

/// The data of an answer, and where it stands.
///
/// An answer without data is none: a stock admin has an error in mind with it, whatever the status.
fn opened(answer: &Answer) -> Result<(&RawValue, Option<Stand>), AnswerError> {
    let status = answer.status;
    if status == StatusCode::UNAUTHORIZED {
        return Err(AnswerError::Token);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&answer.body)
        .map_err(|error| AnswerError::Unreadable(status, error))?;
    let Envelope { code, message, data, longmen } = envelope;
    let data = data.filter(|data| data.get() != "null");
    match data {
        _ if code == 600 => Err(AnswerError::Token),
        Some(data) if status.is_success() && code == 200 => Ok((data, longmen)),
        _ => {
            let text = message.unwrap_or_default();
            Err(AnswerError::Refused(status, code, text.chars().take(MAX_QUOTED).collect()))
        }
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &Answer, data: &'a RawValue) -> Result<T, AnswerError> {
    serde_json::from_str(data.get()).map_err(|error| AnswerError::Unreadable(answer.status, error))
}

/// A token, and how long it lives in milliseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Token {
    pub(super) token: String,
    #[serde(default)]
    pub(super) expired_time: Option<f64>,
}

/// Reads the answer to a log-in.
///
/// # Errors
/// There is no token.
pub(super) fn token(answer: &Answer) -> Result<Token, AnswerError> {
    let (data, _) = opened(answer)?;
    read(answer, data)
}

/// Reads the answer to a question: names of groups. What this build does not know is passed over.
///
/// # Errors
/// It names nothing, not even that nothing changed.
pub(super) fn changed(answer: &Answer) -> Result<(Vec<Group>, Option<Stand>), AnswerError> {
    let (data, stand) = opened(answer)?;
    let names: Vec<String> = read(answer, data)?;
    Ok((names.iter().filter_map(|name| Group::from_name(name)).collect(), stand))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawGroup<'a> {
    #[serde(default)]
    md5: String,
    #[serde(default)]
    last_modify_time: f64,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// One group that was fetched.
pub(super) struct Fetched {
    pub(super) md5: String,
    /// The time of that state by the admin's clock.
    pub(super) modified: i64,
    /// Its objects, or why they cannot be read.
    pub(super) objects: Result<(Payload, Vec<BadObject>), serde_json::Error>,
}

/// Groups that were fetched, in the reference's order.
pub(super) type Groups = Vec<(Group, Fetched)>;

/// Reads the answer to a fetch.
///
/// # Errors
/// It is of no use as a whole.
pub(super) fn groups(answer: &Answer) -> Result<(Groups, Option<Stand>), AnswerError> {
    let (data, stand) = opened(answer)?;
    let groups: HashMap<String, RawGroup<'_>> = read(answer, data)?;
    let mut fetched: Groups = Vec::with_capacity(groups.len());
    for (name, RawGroup { md5, last_modify_time, data }) in groups {
        let Some(group) = Group::from_name(&name) else { continue };
        let objects = match data {
            Some(data) => decode_group(group, data),
            None => Err(serde::de::Error::missing_field("data")),
        };
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds of this age are exact")]
        let modified = last_modify_time as i64;
        fetched.push((group, Fetched { md5, modified, objects }));
    }
    fetched.sort_by_key(|(group, _)| *group);
    Ok((fetched, stand))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Answer { status: StatusCode::from_u16(status).unwrap(), body }
    }

    #[test]
    fn an_answer_without_data_is_never_that_nothing_changed() {
        for (status, body) in [
            (200, r#"{"code":500,"message":"no","data":null}"#),
            (200, r#"{"code":200,"message":"success","data":null}"#),
            (200, r#"{"code":200,"message":"success"}"#),
            (503, r#"{"code":200,"message":"success","data":[]}"#),
        ] {
            let read = changed(&answer(status, body));
            assert!(matches!(read, Err(AnswerError::Refused(..))), "{status} {body}");
        }
        let read = changed(&answer(200, "<html>"));
        assert!(matches!(read, Err(AnswerError::Unreadable(..))));
        for (status, body) in [(401, "{}"), (200, r#"{"code":600,"message":"token is error"}"#)] {
            assert!(matches!(changed(&answer(status, body)), Err(AnswerError::Token)));
        }
    }

    #[test]
    fn names_that_this_build_does_not_know_are_passed_over() {
        let body = r#"{"code":200,"data":["RULE","NEW"],"longmen":{"epoch":"e","version":7}}"#;
        let (groups, stand) = changed(&answer(200, body)).unwrap();
        assert_eq!(groups, [Group::Rule]);
        assert_eq!(stand, Some(Stand { epoch: "e".into(), version: 7 }));
    }

    #[test]
    fn a_group_that_cannot_be_read_is_told_beside_the_others() {
        let body = r#"{"code":200,"data":{"RULE":{"md5":"a","lastModifyTime":1753000000000,
            "data":[{"id":"1"},{"id":"2","sort":7.5}]},
            "SELECTOR":{"md5":"b","lastModifyTime":2},"NEW":{"md5":"c","data":[]}}}"#;
        let (groups, stand) = groups(&answer(200, body)).unwrap();
        assert_eq!((groups.len(), stand), (2, None));
        let (payload, bad) = groups[0].1.objects.as_ref().unwrap();
        assert_eq!((payload.len(), bad.len(), groups[0].1.modified), (1, 1, 1_753_000_000_000));
        assert!(groups[1].0 == Group::Selector && groups[1].1.objects.is_err());
    }
}
