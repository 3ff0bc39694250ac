//! Sources of properties: one document of a file, the environment, the arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::key::KeyPath;
use super::yaml::{self, Node, Step};

/// The text of a file and the name it is called by in messages.
#[derive(Debug)]
pub(super) struct FileText {
    pub(super) name: String,
    pub(super) text: String,
}

/// Where a property is written.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    File { file: Arc<FileText>, document: usize, steps: Vec<Step> },
    Variable(String),
    Argument(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A second look at the text: only a problem or a notice needs the line.
            Self::File { file, document, steps } => {
                match yaml::line_of(&file.text, *document, steps) {
                    Some(line) => write!(f, "{}:{line}", file.name),
                    None => f.write_str(&file.name),
                }
            }
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Argument(name) => write!(f, "argument --{name}"),
        }
    }
}

/// What is written for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// A scalar as written.
    Text(String),
    /// Nothing, `null` or `~`.
    Null,
    /// `[]`.
    EmptyList,
    /// `{}`.
    EmptyMap,
}

impl Setting {
    /// The text, unless there is none or it is blank.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.trim().is_empty() => Some(text),
            _ => None,
        }
    }
}

/// One key with what is written for it.
#[derive(Debug, Clone)]
pub(super) struct Property {
    pub(super) path: KeyPath,
    pub(super) setting: Setting,
    pub(super) origin: Origin,
}

/// How the names of a source are compared with key paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// Dotted, part by part.
    Dotted,
    /// As environment variables: letters and digits alone.
    Squashed,
}

/// The properties of one source; the first in a list of sources wins.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) naming: Naming,
    pub(super) properties: Vec<Property>,
    /// By the name that keys are compared by; ordered, so that what is below a key is a range.
    index: BTreeMap<String, usize>,
}

impl Source {
    fn new(naming: Naming, properties: Vec<Property>) -> Self {
        let name = |p: &Property| match naming {
            Naming::Dotted => p.path.uniform(),
            Naming::Squashed => p.path.squashed(),
        };
        // Written twice in two spellings: the later one counts, as for Spring.
        let index = properties.iter().enumerate().map(|(at, p)| (name(p), at)).collect();
        Self { naming, properties, index }
    }

    /// The properties of one document of a file.
    pub(super) fn document(file: &Arc<FileText>, document: usize, root: &Node) -> Self {
        let mut flat = Flatten {
            file: Arc::clone(file),
            document,
            path: KeyPath::default(),
            steps: Vec::new(),
            out: Vec::new(),
        };
        flat.walk(root);
        Self::new(Naming::Dotted, flat.out)
    }

    /// The variables whose names begin with one of `roots` and a separator, or are one of them.
    pub(super) fn variables(variables: &[(String, String)], roots: &[&str]) -> Self {
        let rooted = |name: &str| {
            roots.iter().any(|root| {
                name == *root
                    || name.len() > root.len()
                        && name.is_char_boundary(root.len())
                        && name[..root.len()].eq_ignore_ascii_case(root)
                        && name[root.len()..].starts_with(['_', '.', '-'])
            })
        };
        let properties = variables
            .iter()
            .filter(|(name, _)| rooted(name))
            .map(|(name, value)| Property {
                path: KeyPath::parse_variable(name),
                setting: Setting::Text(value.clone()),
                origin: Origin::Variable(name.clone()),
            })
            .collect();
        Self::new(Naming::Squashed, properties)
    }

    /// Arguments as (key, value).
    pub(super) fn arguments(arguments: &[(String, String)]) -> Self {
        let properties = arguments
            .iter()
            .map(|(name, value)| Property {
                path: KeyPath::parse(name),
                setting: Setting::Text(value.clone()),
                origin: Origin::Argument(name.clone()),
            })
            .collect();
        Self::new(Naming::Dotted, properties)
    }

    /// The property of exactly this key.
    pub(super) fn get(&self, key: &KeyPath) -> Option<&Property> {
        let name = match self.naming {
            Naming::Dotted => key.uniform(),
            Naming::Squashed => key.squashed(),
        };
        self.index.get(&name).map(|at| &self.properties[*at])
    }

    /// The first property below `key`, in the order of names.
    pub(super) fn below(&self, key: &KeyPath) -> Option<&Property> {
        self.all_below(key).next()
    }

    /// All properties below `key`. Variables have none: their names do not say where a part ends.
    pub(super) fn all_below(&self, key: &KeyPath) -> impl Iterator<Item = &Property> {
        let prefix = match self.naming {
            Naming::Dotted => Some(key.uniform()),
            Naming::Squashed => None,
        };
        prefix.into_iter().flat_map(|prefix| {
            self.starting_with(format!("{prefix}.")).chain(self.starting_with(format!("{prefix}[")))
        })
    }

    fn starting_with(&self, prefix: String) -> impl Iterator<Item = &Property> {
        self.index
            .range(prefix.clone()..)
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .map(|(_, at)| &self.properties[*at])
    }

    /// The elements `key[0]`, `key[1]`, … up to the first that is missing.
    pub(super) fn elements(&self, key: &KeyPath) -> Vec<&Property> {
        let mut element = key.clone();
        (0..)
            .map_while(|index| {
                element.push_index(index);
                let found = self.get(&element);
                element.truncate(key.parts().len());
                found
            })
            .collect()
    }

    /// Whether anything is written for `key` or below it.
    pub(super) fn touches(&self, key: &KeyPath) -> bool {
        match self.naming {
            Naming::Dotted => self.get(key).is_some() || self.below(key).is_some(),
            Naming::Squashed => self.starting_with(key.squashed()).next().is_some(),
        }
    }
}

/// Turns a document into properties.
struct Flatten {
    file: Arc<FileText>,
    document: usize,
    path: KeyPath,
    steps: Vec<Step>,
    out: Vec<Property>,
}

impl Flatten {
    fn walk(&mut self, node: &Node) {
        let setting = match node {
            Node::Null => Setting::Null,
            Node::Text(text) => Setting::Text(text.clone()),
            Node::List(items) if items.is_empty() => Setting::EmptyList,
            Node::Map(members) if members.is_empty() => Setting::EmptyMap,
            Node::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let depth = self.path.parts().len();
                    self.path.push_index(index);
                    self.step(Step::Element(index), item, depth);
                }
                return;
            }
            Node::Map(members) => {
                for (key, member) in members {
                    let depth = self.path.parts().len();
                    self.path.push_text(key);
                    self.step(Step::Member(key.clone()), member, depth);
                }
                return;
            }
        };
        // An empty document has no key at all.
        if !self.path.parts().is_empty() {
            let origin = Origin::File {
                file: Arc::clone(&self.file),
                document: self.document,
                steps: self.steps.clone(),
            };
            self.out.push(Property { path: self.path.clone(), setting, origin });
        }
    }

    fn step(&mut self, step: Step, node: &Node, depth: usize) {
        self.steps.push(step);
        self.walk(node);
        self.steps.pop();
        self.path.truncate(depth);
    }
}
