//! Frames as text.

use super::{ClientMessage, Event, Frame, Inbound, Mark, Payload, decode, encode};
use crate::model::Plugin;

#[test]
fn what_a_stock_gateway_ignores_is_ignored() {
    for (text, why) in [
        (r#"{"groupType":"NEWS","eventType":"UPDATE","data":[]}"#, "unknown groupType"),
        (r#"{"groupType":"PLUGIN","eventType":"MOVE","data":[]}"#, "unknown eventType"),
        (r#"{"eventType":"UPDATE","data":[]}"#, "no groupType"),
        (r#"{"groupType":"PLUGIN","eventType":"UPDATE","data":null}"#, "no data"),
        (r#"{"groupType":"PLUGIN","eventType":"UPDATE"}"#, "no data"),
    ] {
        assert_eq!(decode(text).unwrap(), Inbound::Ignored(why), "{text}");
    }
    for text in ["hello", "[]", "", "7"] {
        assert!(decode(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_bad_member_loses_the_frame_and_names_the_group() {
    let text = r#"{"groupType":"RULE","eventType":"UPDATE","data":[{"id":"1","sort":7.5}]}"#;
    let error = decode(text).unwrap_err().to_string();
    assert!(error.starts_with("RULE frame: ") && error.contains("7.5"), "{error}");
}

#[test]
fn marks_travel_beside_the_data_and_alone() {
    let mark = Mark { epoch: "e".into(), version: 9, last: true, refresh: false };
    let frame = Frame {
        event: Event::Update,
        payload: Payload::Plugin(vec![Plugin { name: "divide".into(), ..Plugin::default() }]),
        mark: Some(mark.clone()),
    };
    assert_eq!(decode(&encode(&frame)).unwrap(), Inbound::Data(frame));
    assert_eq!(decode(&mark.to_text()).unwrap(), Inbound::Mark(mark));
}

#[test]
fn client_messages_round_trip() {
    for message in [
        ClientMessage::Resume { epoch: "e".into(), version: 3 },
        ClientMessage::Ack { epoch: "e".into(), version: 4, faults: Vec::new() },
    ] {
        assert_eq!(ClientMessage::from_text(&message.to_text()), Some(message));
    }
    assert_eq!(ClientMessage::from_text("MYSELF"), None);
}
