//! The one place that knows the YAML library.
//!
//! Everything above works on [`Node`]s, whose scalars are the text as it stands in the file:
//! `1e5` in a password stays `1e5`. Error texts name lines and columns, never the file's content.

use std::fmt;

use serde::Serialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_yaml::Value;

/// One node of a document. Scalars keep the text they are written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Nothing: an empty value, `~` or `null`.
    Null,
    /// A scalar of any type, as written, quotes and escapes undone.
    Text(String),
    /// A sequence, in order.
    List(Vec<Node>),
    /// A mapping in the order of the file; merge keys are applied.
    Map(Vec<(String, Node)>),
}

/// One step from a document's root to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of a mapping, as its key is written.
    Member(String),
    /// An element of a sequence, counted from 0.
    Element(usize),
}

/// A text that is not YAML, or YAML that a configuration cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The line it was found at, counted from 1; absent where the library does not know it.
    pub line: Option<usize>,
    /// What is wrong, without the place.
    pub message: String,
}

impl YamlError {
    fn new(error: &serde_yaml::Error) -> Self {
        let line = error.location().map(|at| at.line());
        // The library ends its text with the place; the line stands in a field of its own.
        let text = error.to_string();
        let message = match (text.rfind(" at line "), line) {
            (Some(at), Some(_)) if !text[at..].contains(',') => text[..at].to_owned(),
            _ => text,
        };
        Self { line, message }
    }
}

/// Reads all documents of `text`, in order; an empty document is [`Node::Null`].
///
/// # Errors
/// [`YamlError`] for malformed YAML, a repeated key, a key that is not a scalar, a tag of an
/// application's own, and nesting or repetition past the library's limits.
pub fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    // The first pass learns the shape, the second one takes each scalar as text.
    let shapes = serde_yaml::Deserializer::from_str(text)
        .map(<Value as de::Deserialize>::deserialize)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| YamlError::new(&e))?;
    serde_yaml::Deserializer::from_str(text)
        .zip(&shapes)
        .map(|(document, shape)| {
            let mut node = Shaped(shape).deserialize(document).map_err(|e| YamlError::new(&e))?;
            merge(&mut node)?;
            Ok(node)
        })
        .collect()
}

/// Finds the line, counted from 1, on which the node at `steps` of document `document` begins.
///
/// A member is found by its key. None where the path does not exist as written, for example for
/// what a merge key brought in.
pub fn line_of(text: &str, document: usize, steps: &[Step]) -> Option<usize> {
    let document = serde_yaml::Deserializer::from_str(text).nth(document)?;
    // The walk ends with an error at the node looked for: its place is the answer.
    match (Locate { steps }).deserialize(document) {
        Err(error) if error.to_string().contains(FOUND) => error.location().map(|at| at.line()),
        _ => None,
    }
}

/// Writes `value` as one YAML document.
///
/// # Errors
/// [`YamlError`] for a value that YAML cannot hold.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, YamlError> {
    serde_yaml::to_string(value).map_err(|e| YamlError::new(&e))
}

/// Applies merge keys (`<<`) from the leaves up; members written in place win.
fn merge(node: &mut Node) -> Result<(), YamlError> {
    match node {
        Node::Null | Node::Text(_) => Ok(()),
        Node::List(items) => items.iter_mut().try_for_each(merge),
        Node::Map(members) => {
            for (_, member) in members.iter_mut() {
                merge(member)?;
            }
            while let Some(at) = members.iter().position(|(key, _)| key == "<<") {
                let sources = match members.remove(at).1 {
                    Node::List(items) => items,
                    one => vec![one],
                };
                for source in sources {
                    let Node::Map(extra) = source else {
                        return Err(YamlError {
                            line: None,
                            message: "a merge key (<<) needs a mapping or a list of mappings"
                                .to_owned(),
                        });
                    };
                    for (key, value) in extra {
                        if !members.iter().any(|(known, _)| *known == key) {
                            members.push((key, value));
                        }
                    }
                }
            }
            Ok(())
        }
    }
}

/// Reads a node whose shape is known, taking scalars as text.
struct Shaped<'v>(&'v Value);

impl<'de> DeserializeSeed<'de> for Shaped<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Node, D::Error> {
        match self.0 {
            Value::Null => <IgnoredAny as de::Deserialize>::deserialize(input).map(|_| Node::Null),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                input.deserialize_str(ScalarText).map(Node::Text)
            }
            Value::Sequence(items) => input.deserialize_seq(ShapedList(items)),
            Value::Mapping(members) => input.deserialize_map(ShapedMap(members)),
            Value::Tagged(tagged) => {
                Err(de::Error::custom(format_args!("the tag {} is not known", tagged.tag)))
            }
        }
    }
}

struct ScalarText;

impl Visitor<'_> for ScalarText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

impl<'de> DeserializeSeed<'de> for ScalarText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<String, D::Error> {
        input.deserialize_str(self)
    }
}

struct ShapedList<'v>(&'v [Value]);

impl<'de> Visitor<'de> for ShapedList<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Node, A::Error> {
        let mut items = Vec::with_capacity(self.0.len());
        for shape in self.0 {
            match input.next_element_seed(Shaped(shape))? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(Node::List(items))
    }
}

struct ShapedMap<'v>(&'v serde_yaml::Mapping);

impl<'de> Visitor<'de> for ShapedMap<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Node, A::Error> {
        let mut members = Vec::with_capacity(self.0.len());
        for (_, shape) in self.0 {
            let Some(key) = input.next_key_seed(ScalarText)? else { break };
            members.push((key, input.next_value_seed(Shaped(shape))?));
        }
        Ok(Node::Map(members))
    }
}

/// The text of the error that ends a successful search.
const FOUND: &str = "found it here";

/// Walks to the node at `steps` and fails there.
#[derive(Clone, Copy)]
struct Locate<'s> {
    steps: &'s [Step],
}

impl<'de> DeserializeSeed<'de> for Locate<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        match self.steps.first() {
            None => input.deserialize_any(Here),
            Some(Step::Member(_)) => input.deserialize_map(self),
            Some(Step::Element(_)) => input.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Locate<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the node looked for")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<(), A::Error> {
        let (Some(Step::Member(name)), rest) = (self.steps.first(), &self.steps[1..]) else {
            return Ok(());
        };
        let last = rest.is_empty();
        while let Some(hit) = input.next_key_seed(LocateKey { name, last })? {
            if hit {
                return input.next_value_seed(Locate { steps: rest });
            }
            input.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<(), A::Error> {
        let (Some(Step::Element(index)), rest) = (self.steps.first(), &self.steps[1..]) else {
            return Ok(());
        };
        for _ in 0..*index {
            if input.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        input.next_element_seed(Locate { steps: rest }).map(|_| ())
    }
}

/// Compares a key; fails at it when it is the last step.
struct LocateKey<'s> {
    name: &'s str,
    last: bool,
}

impl<'de> DeserializeSeed<'de> for LocateKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<bool, D::Error> {
        input.deserialize_str(self)
    }
}

impl Visitor<'_> for LocateKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        match (key == self.name, self.last) {
            (true, true) => Err(E::custom(FOUND)),
            (hit, _) => Ok(hit),
        }
    }
}

/// Fails at whatever comes.
struct Here;

impl<'de> Visitor<'de> for Here {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FOUND)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom(FOUND))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(de::Error::custom(FOUND))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(de::Error::custom(FOUND))
    }
}

#[cfg(test)]
mod tests;
