//! Typed reading of declared keys.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::check;
use super::environment::Environment;
use super::key::{KeyPath, Part};
use super::layers::{self, Found, Inputs, Layers};
use super::lookup::{Lookup, Pattern};
use super::problem::{ConfigError, Loaded, Notice, Problem};
use super::schema::{KeySpec, Schema};
use super::source::{Naming, Property, Setting, Source};
use super::value::{FromSetting, Kind, Secret, Unfit};

/// Reads the keys of a [`Schema`] from all sources, and gathers everything that is wrong.
///
/// Every method answers a usable value even where there is a problem, so that all problems come
/// out together; [`load`] then fails.
pub struct Reader<'a> {
    lookup: &'a Lookup,
    layers: &'a Layers,
    environment: &'a dyn Environment,
    problems: Vec<Problem>,
    notices: Vec<Notice>,
    asked: BTreeSet<&'static str>,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// What a source says of a list.
enum Written<'a> {
    /// Nothing that counts.
    Nothing,
    /// The whole list as one text, or as an empty list.
    Whole(&'a Property),
    /// Its elements.
    Elements(Vec<&'a Property>),
}

/// Loads a configuration: gathers the sources, lets `read` take typed values out of them, and
/// checks every property against the table.
///
/// # Errors
/// [`ConfigError`] with all problems: unreadable or malformed files, wrong values, keys that must
/// not be set, and what `read` itself refuses.
pub fn load<T>(
    schema: &'static Schema,
    inputs: &Inputs<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> T,
) -> Result<Loaded<T>, ConfigError> {
    let mut layers = Layers::load(inputs)?;
    let mut notices = std::mem::take(&mut layers.notices);
    let lookup = Lookup::new(schema);
    let mut reader = Reader {
        lookup: &lookup,
        layers: &layers,
        environment: inputs.environment,
        problems: Vec::new(),
        notices: Vec::new(),
        asked: BTreeSet::new(),
    };
    let config = read(&mut reader);
    let Reader { mut problems, notices: more, .. } = reader;
    let checked = check::properties(&lookup, &layers);
    problems.extend(checked.problems);
    notices.extend(checked.notices);
    notices.extend(more);
    if problems.is_empty() { Ok(Loaded { config, notices }) } else { Err(ConfigError { problems }) }
}

impl<'a> Reader<'a> {
    /// The value of a key that always has one: what is set, else the table's default.
    pub fn get<T: FromSetting>(&mut self, path: &'static str) -> T {
        let spec = self.spec(path);
        self.optional(path).unwrap_or_else(|| default_of(spec, &spec.kind, spec.default))
    }

    /// The value of a key that may have none.
    pub fn optional<T: FromSetting>(&mut self, path: &'static str) -> Option<T> {
        let spec = self.spec(path);
        let set = match self.scalar(spec, None) {
            Some((text, property)) => self.convert(spec, &spec.kind, &text, property),
            None => None,
        };
        let default =
            || (!spec.default.is_empty()).then(|| default_of(spec, &spec.kind, spec.default));
        set.or_else(default)
    }

    /// A secret, or the content of the file that the same key with `File` behind it names.
    pub fn secret(&mut self, path: &'static str) -> Option<Secret> {
        if let Some(secret) = self.optional(path) {
            return Some(secret);
        }
        let key = KeyPath::parse(&format!("{path}File"));
        let found = self.layers.find(&key)?;
        let name = found.property.setting.text()?.to_owned();
        let content = match self.layers.resolve(&name) {
            Err(message) => Err(message),
            Ok(name) => match self.environment.read(Path::new(name.trim())) {
                Ok(Some(text)) if !text.trim().is_empty() => Ok(text),
                Ok(Some(_)) => Err(format!("expected a secret in the file {name}, found nothing")),
                Ok(None) => Err(format!("there is no file {name}")),
                Err(error) => Err(format!("the file {name} cannot be read: {error}")),
            },
        };
        match content {
            Ok(text) => Some(Secret::new(text.trim_end_matches(['\r', '\n']))),
            Err(message) => {
                self.problem_at(found.property, message);
                None
            }
        }
    }

    /// The values of a list key: what is set, else the table's default. An empty list is set.
    pub fn list<T: FromSetting>(&mut self, path: &'static str) -> Vec<T> {
        let spec = self.spec(path);
        let Kind::List(item) = &spec.kind else {
            unreachable!("{path} is declared as {:?}, not as a list", spec.kind)
        };
        let keys: Vec<KeyPath> = spec.spellings().map(KeyPath::parse).collect();
        let layers = self.layers;
        let found = layers
            .sources
            .iter()
            .find_map(|source| keys.iter().find_map(|key| self.list_in(spec, source, key)));
        match found.unwrap_or(Written::Nothing) {
            Written::Nothing => {
                split(spec.default).map(|text| default_of(spec, item, text)).collect()
            }
            Written::Whole(property) => self.items(spec, item, property, true),
            Written::Elements(properties) => {
                properties.into_iter().flat_map(|p| self.items(spec, item, p, false)).collect()
            }
        }
    }

    /// What one source says of a list; a mapping and a gap in the indexes are problems.
    fn list_in(
        &mut self,
        spec: &'static KeySpec,
        source: &'a Source,
        key: &KeyPath,
    ) -> Option<Written<'a>> {
        if let Some(whole) = source.get(key) {
            let nothing =
                !matches!(whole.setting, Setting::EmptyList) && whole.setting.text().is_none();
            return Some(if nothing { Written::Nothing } else { Written::Whole(whole) });
        }
        let elements = source.elements(key);
        let depth = key.parts().len();
        let stray = source.all_below(key).find(|property| match property.path.parts().get(depth) {
            Some(Part::Index(index)) => *index >= elements.len(),
            _ => true,
        });
        if let Some(stray) = stray {
            let message = match stray.path.parts().get(depth) {
                Some(Part::Index(_)) => "expected the indexes of a list without a gap".to_owned(),
                _ => format!("expected {}, found a mapping", spec.kind.expectation()),
            };
            self.problems.push(Problem {
                place: layers::place(&stray.origin),
                key: Some(match stray.path.parts().get(depth) {
                    Some(Part::Index(_)) => stray.path.to_string(),
                    _ => key.to_string(),
                }),
                message,
            });
            return Some(Written::Nothing);
        }
        (!elements.is_empty()).then_some(Written::Elements(elements))
    }

    fn items<T: FromSetting>(
        &mut self,
        spec: &'static KeySpec,
        item: &Kind,
        property: &'a Property,
        whole: bool,
    ) -> Vec<T> {
        let Some(text) = property.setting.text() else { return Vec::new() };
        let Some(text) = self.resolved(spec, text, property) else { return Vec::new() };
        let parts: Vec<&str> = if whole { split(&text).collect() } else { vec![text.trim()] };
        parts.into_iter().filter_map(|part| self.convert(spec, item, part, property)).collect()
    }

    /// What is set for a key with `*`, from all sources: the names that `*` stands for, as
    /// written, with the value of the source that wins.
    pub fn entries<T: FromSetting>(&mut self, path: &'static str) -> Vec<(String, T)> {
        let spec = self.spec(path);
        let pattern = Pattern::new(path);
        let mut found: Vec<(String, &'a Property)> = Vec::new();
        for source in &self.layers.sources {
            for property in &source.properties {
                let owned = self.lookup.owner(property, source.naming);
                let name = pattern.captures(&property.path, source.naming);
                let known =
                    |other: &(String, &Property)| super::uniform(&other.0) == super::uniform(&name);
                if !name.is_empty()
                    && owned.is_some_and(|known| known.spec.path == path)
                    && !found.iter().any(known)
                {
                    found.push((name, property));
                }
            }
        }
        let mut entries = Vec::new();
        for (name, property) in found {
            let Some(text) = property.setting.text() else { continue };
            let Some(text) = self.resolved(spec, text, property) else { continue };
            if let Some(value) = self.convert(spec, &spec.kind, &text, property) {
                entries.push((name, value));
            }
        }
        entries
    }

    /// How many elements list `path` of objects has, in the source that wins.
    pub fn elements(&self, path: &str) -> usize {
        let key = KeyPath::parse(path);
        let count =
            |source: &Source| (0..).take_while(|index| source.touches(&at(&key, *index))).count();
        self.layers.sources.iter().map(count).find(|count| *count > 0).unwrap_or(0)
    }

    /// The value of a member of the list element `index`; `path` has `[]` in its place.
    pub fn member<T: FromSetting>(&mut self, path: &'static str, index: usize) -> Option<T> {
        let spec = self.spec(path);
        let (text, property) = self.scalar(spec, Some(index))?;
        self.convert(spec, &spec.kind, &text, property)
    }

    /// Whether somebody sets the key to something.
    pub fn is_set(&self, path: &'static str) -> bool {
        let mut keys = self.lookup.key(path).into_iter().flat_map(KeySpec::spellings);
        keys.any(|spelling| {
            let key = KeyPath::parse(spelling);
            let set = |source: &Source| match source.get(&key) {
                Some(property) => property.setting.text().is_some(),
                None => source.below(&key).is_some_and(|p| p.setting.text().is_some()),
            };
            self.layers.sources.iter().any(set)
        })
    }

    /// Reports that the value of `path` cannot be used, at the place that sets it.
    pub fn reject(&mut self, path: &'static str, message: impl Into<String>) {
        self.reject_item(path, 0, message);
    }

    /// Reports that item `index` of list `path` cannot be used, at the place that sets it.
    pub fn reject_item(&mut self, path: &'static str, index: usize, message: impl Into<String>) {
        let keys: Vec<KeyPath> = self
            .lookup
            .key(path)
            .into_iter()
            .flat_map(KeySpec::spellings)
            .map(KeyPath::parse)
            .collect();
        let found = self
            .layers
            .sources
            .iter()
            .find_map(|source| keys.iter().find_map(|key| layers::list([source], key)))
            .and_then(|found| found.get(index).or_else(|| found.first()).copied());
        match found {
            Some(property) => self.problem_at(property, message.into()),
            None => self.problems.push(Problem {
                place: "default".to_owned(),
                key: Some(path.to_owned()),
                message: message.into(),
            }),
        }
    }

    /// Adds something to log.
    pub fn note(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// The declared paths that were read so far.
    pub fn asked(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.asked.iter().copied()
    }

    fn spec(&mut self, path: &'static str) -> &'static KeySpec {
        self.asked.insert(path);
        match self.lookup.key(path) {
            Some(spec) => spec,
            None => unreachable!("{path} is not in the table of known keys"),
        }
    }

    /// The resolved text of a scalar key; `None` where it is not set or blank.
    fn scalar(
        &mut self,
        spec: &'static KeySpec,
        index: Option<usize>,
    ) -> Option<(String, &'a Property)> {
        let keys: Vec<KeyPath> = spec
            .spellings()
            .map(|spelling| match index {
                Some(index) => KeyPath::parse(&spelling.replace("[]", &format!("[{index}]"))),
                None => KeyPath::parse(spelling),
            })
            .collect();
        for source in &self.layers.sources {
            for key in &keys {
                if let Some(property) = source.get(key) {
                    return self.text_of(spec, Found { property, source });
                }
                if let Some(stray) = source.below(key) {
                    let kind = match stray.path.parts().get(key.parts().len()) {
                        Some(Part::Index(_)) => "a list",
                        _ => "a mapping",
                    };
                    let message = format!("expected {}, found {kind}", spec.kind.expectation());
                    self.problems.push(Problem {
                        place: layers::place(&stray.origin),
                        key: Some(key.to_string()),
                        message,
                    });
                    return None;
                }
            }
        }
        None
    }

    fn text_of(
        &mut self,
        spec: &'static KeySpec,
        found: Found<'a>,
    ) -> Option<(String, &'a Property)> {
        let Found { property, source } = found;
        let kind = match property.setting {
            Setting::EmptyList => "a list",
            Setting::EmptyMap => "a mapping",
            Setting::Null | Setting::Text(_) => {
                let text = property.setting.text()?;
                let text = self.resolved(spec, text, property)?;
                return (!text.trim().is_empty()).then_some((text, property));
            }
        };
        debug_assert_eq!(source.naming, Naming::Dotted, "only files hold collections");
        self.problem_at(property, format!("expected {}, found {kind}", spec.kind.expectation()));
        None
    }

    fn resolved(&mut self, spec: &KeySpec, text: &str, property: &Property) -> Option<String> {
        match self.layers.resolve(text) {
            Ok(text) => Some(text),
            Err(_) if spec.is_secret() => {
                self.problem_at(property, "has a placeholder that cannot be resolved".to_owned());
                None
            }
            Err(message) => {
                self.problem_at(property, message);
                None
            }
        }
    }

    fn convert<T: FromSetting>(
        &mut self,
        spec: &KeySpec,
        kind: &Kind,
        text: &str,
        property: &Property,
    ) -> Option<T> {
        match T::from_setting(kind, text) {
            Ok(value) => Some(value),
            Err(Unfit) => {
                let found = if spec.is_secret() {
                    "a value that is not shown".to_owned()
                } else {
                    format!("\"{}\"", check::shown(text))
                };
                let message = format!("expected {}, found {found}", kind.expectation());
                self.problem_at(property, message);
                None
            }
        }
    }

    fn problem_at(&mut self, property: &Property, message: String) {
        self.problems.push(Problem {
            place: layers::place(&property.origin),
            key: Some(check::spelled(self.lookup, property)),
            message,
        });
    }
}

fn at(key: &KeyPath, index: usize) -> KeyPath {
    let mut element = key.clone();
    element.push_index(index);
    element
}

/// The items of a list written as one text.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';']).map(str::trim).filter(|item| !item.is_empty())
}

/// The table's own default, which a test has proven to be of its kind.
fn default_of<T: FromSetting>(spec: &KeySpec, kind: &Kind, text: &str) -> T {
    match T::from_setting(kind, text) {
        Ok(value) => value,
        Err(Unfit) => unreachable!("the default {text:?} of {} is not of its kind", spec.path),
    }
}
