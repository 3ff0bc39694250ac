//! What the table says of the properties that are set: unknown, without meaning, refused.

use std::collections::BTreeSet;

use super::key::{Part, uniform};
use super::layers::Layers;
use super::lookup::{Known, Lookup};
use super::problem::{Notice, Problem};
use super::schema::{KeySpec, Schema, Status};
use super::source::{Naming, Origin, Property, Setting, Source};
use super::value::{FromSetting, Kind};

/// What came out.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) problems: Vec<Problem>,
    pub(super) notices: Vec<Notice>,
    inert: BTreeSet<&'static str>,
    pending: BTreeSet<&'static str>,
    old: BTreeSet<String>,
}

/// Looks at every property of every source.
pub(super) fn properties(lookup: &Lookup, layers: &Layers) -> Checked {
    let mut checked = Checked::default();
    for source in layers.sources.iter().rev() {
        for property in &source.properties {
            checked.property(lookup, source, property);
        }
    }
    for text in &checked.old {
        checked.notices.push(Notice::info(text.clone()));
    }
    if !checked.pending.is_empty() {
        let keys: Vec<&str> = checked.pending.iter().copied().collect();
        let text = format!("this version does not act on: {}", keys.join(", "));
        checked.notices.push(Notice::warn(text));
    }
    if !checked.inert.is_empty() {
        let keys: Vec<&str> = checked.inert.iter().copied().collect();
        let text = format!("these keys are accepted and have no meaning here: {}", keys.join(", "));
        checked.notices.push(Notice::info(text));
    }
    checked
}

impl Checked {
    fn property(&mut self, lookup: &Lookup, source: &Source, property: &Property) {
        let is_set = property.setting.text().is_some();
        let Some(Known { spec, by_alias }) = owner(lookup, source, property) else {
            self.unknown(lookup, source, property);
            return;
        };
        match spec.status {
            Status::Refused(what_to_do) if is_set => self.problems.push(Problem {
                place: property.origin.to_string(),
                key: Some(spelled(lookup, property)),
                message: what_to_do.to_owned(),
            }),
            Status::Inert(_) if is_set => {
                self.inert.insert(spec.path);
            }
            Status::Pending(_) if is_set && !is_switched_off(spec, property) => {
                self.pending.insert(spec.path);
            }
            Status::Used if by_alias && is_set && spec.path.starts_with("shenyu.") => {
                let written = spelled(lookup, property);
                self.old.insert(format!("{written} is another spelling of {}", spec.path));
            }
            _ => {}
        }
    }

    fn unknown(&mut self, lookup: &Lookup, source: &Source, property: &Property) {
        let place = || property.origin.to_string();
        if lookup.is_section(&property.path) && source.naming == Naming::Dotted {
            if let Setting::Text(text) = &property.setting
                && !text.trim().is_empty()
            {
                self.problems.push(Problem {
                    place: place(),
                    key: Some(property.path.to_string()),
                    message: format!("expected a mapping, found \"{}\"", shown(text)),
                });
            }
            return;
        }
        let ours = matches!(property.path.parts().first(), Some(Part::Name(root)) if uniform(root) == "shenyu");
        let (stray_argument, from_cluster) = match &property.origin {
            Origin::Argument(name) => (!is_root(lookup.schema, name), false),
            Origin::Variable(name) => (false, is_service_variable(name)),
            Origin::File { .. } => (false, false),
        };
        if !ours && !stray_argument || from_cluster {
            return;
        }
        let nearest = lookup.nearest(&property.path);
        let hint =
            nearest.map_or_else(String::new, |key| format!("; the nearest known key is {key}"));
        let text = format!("{}: {} is not a known key{hint}", place(), property.path);
        self.notices.push(Notice::warn(text));
    }
}

/// The declared key of a property; a secret's `…File` key belongs to the secret.
fn owner(lookup: &Lookup, source: &Source, property: &Property) -> Option<Known> {
    lookup.owner(property, source.naming).or_else(|| {
        let name = property.path.to_string();
        let wanted = match source.naming {
            Naming::Dotted => property.path.uniform(),
            Naming::Squashed => property.path.squashed(),
        };
        if !uniform(&name).ends_with("file") {
            return None;
        }
        let spec = lookup.schema.keys().filter(|spec| spec.is_secret()).find(|spec| {
            let own = super::KeyPath::parse(&format!("{}File", spec.path));
            wanted
                == match source.naming {
                    Naming::Dotted => own.uniform(),
                    Naming::Squashed => own.squashed(),
                }
        })?;
        Some(Known { spec, by_alias: false })
    })
}

/// Whether the property is a switch in its off position, as shipped files have many.
fn is_switched_off(spec: &KeySpec, property: &Property) -> bool {
    let text = property.setting.text().unwrap_or_default();
    matches!(spec.kind, Kind::Bool) && bool::from_setting(&spec.kind, text) == Ok(false)
}

/// Whether an argument is for one of the frameworks whose keys are understood in part.
fn is_root(schema: &Schema, name: &str) -> bool {
    let path = super::KeyPath::parse(name);
    let Some(Part::Name(root)) = path.parts().first() else { return false };
    path.parts().len() > 1 && schema.roots().iter().any(|known| uniform(known) == uniform(root))
        || uniform(root) == "config"
}

/// Whether a variable is one that Kubernetes sets for each service: a service named
/// `shenyu-admin` gives `SHENYU_ADMIN_SERVICE_HOST` and the like.
fn is_service_variable(name: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.rsplit_once("_PORT_").is_some_and(|(_, rest)| {
            rest.starts_with(|c: char| c.is_ascii_digit())
                && (rest.contains("_TCP") || rest.contains("_UDP"))
        })
}

/// The key as its owner's file spells it; variables are shown by the declared path.
pub(super) fn spelled(lookup: &Lookup, property: &Property) -> String {
    match (&property.origin, lookup.owner(property, Naming::Squashed)) {
        (Origin::Variable(_), Some(known)) if !known.spec.path.contains('*') => {
            known.spec.path.to_owned()
        }
        _ => property.path.to_string(),
    }
}

/// A value for a message: one line, at most 80 characters.
pub(super) fn shown(text: &str) -> String {
    let mut out: String =
        text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}
