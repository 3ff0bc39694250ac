//! All sources of one process, in order of precedence.

use std::fmt;
use std::path::Path;

use super::environment::Environment;
use super::files::{self, Collected};
use super::key::KeyPath;
use super::placeholder;
use super::problem::{ConfigError, Notice, Problem};
use super::source::{Origin, Property, Setting, Source};

/// What a configuration is loaded from.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The arguments after the program's name.
    pub arguments: &'a [String],
    /// Variables and files.
    pub environment: &'a dyn Environment,
    /// The file that is read where nobody names another, for example `application.yml`.
    pub default_path: &'a Path,
    /// The text that stands in where there is no file at all.
    pub shipped: &'a str,
    /// The first parts of known keys: variables that begin with one of them are settings.
    pub roots: &'a [&'static str],
}

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may hold secrets.
        f.debug_struct("Inputs").field("default_path", &self.default_path).finish_non_exhaustive()
    }
}

/// Every source, the one that wins first: arguments, `SPRING_APPLICATION_JSON`, environment,
/// files of profiles, the file's own documents from the last to the first.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) sources: Vec<Source>,
    variables: Vec<(String, String)>,
    pub(super) notices: Vec<Notice>,
}

/// A property found, with the source that holds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'l> {
    pub(super) property: &'l Property,
    pub(super) source: &'l Source,
}

impl Layers {
    /// Reads everything that `inputs` names.
    pub(super) fn load(inputs: &Inputs<'_>) -> Result<Self, ConfigError> {
        let (arguments, mut problems) = split_arguments(inputs.arguments);
        let variables = inputs.environment.variables();
        let mut layers = Self {
            sources: vec![
                Source::arguments(&arguments),
                Source::variables(&variables, inputs.roots),
            ],
            variables,
            notices: Vec::new(),
        };
        if let Some(json) = layers.json(&mut problems) {
            layers.sources.insert(1, json);
        }
        let Collected { sources, notices, problems: more } = files::collect(inputs, &layers);
        problems.extend(more);
        layers.notices = notices;
        layers.sources.extend(sources);
        if problems.is_empty() { Ok(layers) } else { Err(ConfigError { problems }) }
    }

    /// The source that Spring's `SPRING_APPLICATION_JSON` makes.
    fn json(&self, problems: &mut Vec<Problem>) -> Option<Source> {
        let found = self.find(&KeyPath::parse("spring.application.json"))?;
        let text = found.property.setting.text()?;
        match files::parse("SPRING_APPLICATION_JSON", text) {
            Ok(mut documents) => documents.pop(),
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    }

    /// The same without files: what is known before a file is read.
    pub(super) fn with_files(&self, sources: Vec<Source>) -> Overlay<'_> {
        Overlay { top: self, files: sources }
    }

    /// The property of exactly `key` from the source that wins.
    pub(super) fn find(&self, key: &KeyPath) -> Option<Found<'_>> {
        find(&self.sources, key)
    }

    /// Resolves the placeholders of `text` from variables by their exact names, then from keys.
    pub(super) fn resolve(&self, text: &str) -> Result<String, String> {
        placeholder::resolve(text, &|name| self.lookup(name))
    }

    fn lookup(&self, name: &str) -> Option<String> {
        lookup(&self.variables, [&self.sources[..]], name)
    }
}

/// The layers with a few more sources below, while files are being gathered.
#[derive(Debug)]
pub(super) struct Overlay<'l> {
    top: &'l Layers,
    files: Vec<Source>,
}

impl Overlay<'_> {
    /// The texts of a list key, resolved, from the source that wins; empty where nobody sets it.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Problem> {
        let key = KeyPath::parse(key);
        let found = list(self.top.sources.iter().chain(&self.files), &key);
        let mut texts = Vec::new();
        for property in found.unwrap_or_default() {
            let Some(text) = property.setting.text() else { continue };
            let resolve = |name: &str| {
                lookup(&self.top.variables, [&self.top.sources[..], &self.files[..]], name)
            };
            let text = placeholder::resolve(text, &resolve).map_err(|message| Problem {
                place: property.origin.to_string(),
                key: Some(property.path.to_string()),
                message,
            })?;
            let texts_of = text.split(',').map(|part| part.trim().to_owned());
            texts.extend(texts_of.filter(|part| !part.is_empty()));
        }
        Ok(texts)
    }

    /// Gives the sources back.
    pub(super) fn into_files(self) -> Vec<Source> {
        self.files
    }
}

fn find<'l>(sources: impl IntoIterator<Item = &'l Source>, key: &KeyPath) -> Option<Found<'l>> {
    sources
        .into_iter()
        .find_map(|source| source.get(key).map(|property| Found { property, source }))
}

/// The properties that make up list `key` in the first source that has any: one with the whole
/// list as text, or its elements.
pub(super) fn list<'l>(
    sources: impl IntoIterator<Item = &'l Source>,
    key: &KeyPath,
) -> Option<Vec<&'l Property>> {
    sources.into_iter().find_map(|source| match source.get(key) {
        Some(whole) => Some(vec![whole]),
        None => {
            let elements = source.elements(key);
            (!elements.is_empty()).then_some(elements)
        }
    })
}

fn lookup<const N: usize>(
    variables: &[(String, String)],
    sources: [&[Source]; N],
    name: &str,
) -> Option<String> {
    if let Some((_, value)) = variables.iter().find(|(known, _)| known == name) {
        return Some(value.clone());
    }
    let found = find(sources.into_iter().flatten(), &KeyPath::parse(name))?;
    match &found.property.setting {
        Setting::Text(text) => Some(text.clone()),
        Setting::Null | Setting::EmptyList | Setting::EmptyMap => Some(String::new()),
    }
}

/// Splits `--key=value` arguments; anything else is a problem.
fn split_arguments(arguments: &[String]) -> (Vec<(String, String)>, Vec<Problem>) {
    let mut pairs = Vec::new();
    let mut problems = Vec::new();
    for argument in arguments {
        match argument.strip_prefix("--").and_then(|rest| rest.split_once('=')) {
            Some((key, value)) if !key.is_empty() => pairs.push((key.to_owned(), value.to_owned())),
            _ => problems.push(Problem {
                place: format!("argument {}", shortened(argument)),
                key: None,
                message: "expected --key=value".to_owned(),
            }),
        }
    }
    (pairs, problems)
}

/// At most the first 40 characters, so that a message stays a line.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Where `key` is written, for messages.
pub(super) fn place(origin: &Origin) -> String {
    origin.to_string()
}
