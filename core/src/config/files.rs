//! The files of a configuration: where they are, their documents, profiles and imports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::key::KeyPath;
use super::layers::{Inputs, Layers};
use super::problem::{Notice, Problem};
use super::profile;
use super::source::{FileText, Property, Source};
use super::yaml;

/// How files may import files, at most.
const IMPORT_DEPTH_LIMIT: usize = 8;

/// How often profiles may bring in profiles.
const PROFILE_ROUNDS_LIMIT: usize = 8;

/// The sources that came out of files, the one that wins first.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) sources: Vec<Source>,
    pub(super) notices: Vec<Notice>,
    pub(super) problems: Vec<Problem>,
}

/// One document with the folder that its imports are relative to.
struct Document {
    source: Source,
    folder: PathBuf,
    of_profile: bool,
}

/// Reads the documents of `text`, which messages call `name`.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Source>, Problem> {
    let documents = yaml::documents(text).map_err(|error| Problem {
        place: error.line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}")),
        key: None,
        message: format!("not valid YAML: {}", error.message),
    })?;
    let file = Arc::new(FileText { name: name.to_owned(), text: text.to_owned() });
    let sources = documents.iter().enumerate();
    Ok(sources.map(|(at, root)| Source::document(&file, at, root)).collect())
}

/// Finds and reads all files that are in force.
pub(super) fn collect(inputs: &Inputs<'_>, top: &Layers) -> Collected {
    let mut gather = Gather { inputs, top, read: Vec::new(), problems: Vec::new() };
    let mut out = gather.run();
    let notice = match (gather.read.is_empty(), out.problems.is_empty()) {
        (true, true) => {
            Some("no configuration file found: the built-in one is in force".to_owned())
        }
        (false, true) => Some(format!("configuration read from {}", gather.read.join(", "))),
        (_, false) => None,
    };
    out.notices.splice(0..0, notice.map(Notice::info));
    out
}

struct Gather<'a> {
    inputs: &'a Inputs<'a>,
    top: &'a Layers,
    /// Names of the files read.
    read: Vec<String>,
    problems: Vec<Problem>,
}

/// A file or a folder with files to read.
struct Location {
    path: PathBuf,
    optional: bool,
    is_folder: bool,
    /// What named it, for messages.
    named_by: String,
}

impl Gather<'_> {
    fn run(&mut self) -> Collected {
        let locations = self.locations();
        let mut documents = Vec::new();
        for location in &locations {
            documents.extend(self.location(location, None));
        }
        if documents.is_empty() && self.problems.is_empty() {
            match parse("built-in application.yml", self.inputs.shipped) {
                Ok(sources) => documents.extend(sources.into_iter().map(|source| Document {
                    source,
                    folder: PathBuf::new(),
                    of_profile: false,
                })),
                Err(problem) => self.problems.push(problem),
            }
        }
        let (documents, active) = self.activate(documents, &locations);
        let mut collected = Collected::default();
        for document in documents.into_iter().rev() {
            self.check_profile_keys(&document);
            collected.sources.push(document.source);
        }
        if !active.is_empty() {
            collected.notices.push(Notice::info(format!("active profiles: {}", active.join(", "))));
        }
        collected.problems = std::mem::take(&mut self.problems);
        collected
    }

    /// What arguments and variables say, else the default file and its neighbours.
    fn locations(&mut self) -> Vec<Location> {
        let explicit = self.texts("config");
        if !explicit.is_empty() {
            return self.named(&explicit, "argument --config");
        }
        let named = self.texts("spring.config.location");
        let mut locations = if named.is_empty() {
            let folder = self.inputs.default_path.parent().unwrap_or_else(|| Path::new(""));
            let mut standard = vec![Location {
                path: self.inputs.default_path.to_owned(),
                optional: true,
                is_folder: false,
                named_by: String::new(),
            }];
            // Spring's `config/` and the `conf/` of ShenYu's own distribution.
            standard.extend(["conf", "config"].map(|name| Location {
                path: folder.join(name),
                optional: true,
                is_folder: true,
                named_by: String::new(),
            }));
            standard
        } else {
            self.named(&named, "spring.config.location")
        };
        let additional = self.texts("spring.config.additional-location");
        locations.extend(self.named(&additional, "spring.config.additional-location"));
        locations
    }

    fn named(&mut self, names: &[String], named_by: &str) -> Vec<Location> {
        let mut locations = Vec::new();
        for name in names.iter().flat_map(|text| text.split(';')).map(str::trim) {
            let (optional, rest) = match name.strip_prefix("optional:") {
                Some(rest) => (true, rest),
                None => (false, name),
            };
            // What Spring has inside its jar is the built-in file here.
            if rest.is_empty() || rest.starts_with("classpath:") {
                continue;
            }
            let plain = rest.strip_prefix("file:").unwrap_or(rest);
            let path = PathBuf::from(plain);
            let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if extension == "properties" {
                self.problems.push(Problem {
                    place: named_by.to_owned(),
                    key: None,
                    message: format!("expected a YAML file or a folder, found \"{rest}\""),
                });
                continue;
            }
            let is_folder = plain.ends_with('/') || !matches!(extension, "yml" | "yaml");
            locations.push(Location { path, optional, is_folder, named_by: named_by.to_owned() });
        }
        locations
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        self.top.with_files(Vec::new()).texts(key).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        })
    }

    /// Reads a location's documents, those of one profile or those of none.
    fn location(&mut self, location: &Location, profile: Option<&str>) -> Vec<Document> {
        let suffix = profile.map_or_else(String::new, |name| format!("-{name}"));
        let candidates: Vec<PathBuf> = if location.is_folder {
            let names = self.texts("spring.config.name");
            let name = names.first().map_or("application", String::as_str);
            ["yml", "yaml"].map(|e| location.path.join(format!("{name}{suffix}.{e}"))).into()
        } else {
            let stem = location.path.file_stem().and_then(|s| s.to_str()).unwrap_or("application");
            let written = location.path.extension().and_then(|e| e.to_str()).unwrap_or("yml");
            let other = if written == "yml" { "yaml" } else { "yml" };
            let mut names = vec![format!("{stem}{suffix}.{written}")];
            // A file named on purpose is exactly that one; beside it either ending will do.
            if profile.is_some() || location.named_by.is_empty() {
                names.push(format!("{stem}{suffix}.{other}"));
            }
            names.into_iter().map(|name| location.path.with_file_name(name)).collect()
        };
        for path in &candidates {
            if let Some(documents) = self.file(path, profile.is_some(), 0) {
                return documents;
            }
        }
        if profile.is_none() && !location.optional {
            self.problems.push(Problem {
                place: location.named_by.clone(),
                key: None,
                message: format!("there is no file {}", candidates[0].display()),
            });
        }
        Vec::new()
    }

    /// Reads one file; `None` where there is none.
    fn file(&mut self, path: &Path, of_profile: bool, depth: usize) -> Option<Vec<Document>> {
        let name = path.display().to_string();
        let text = match self.inputs.environment.read(path) {
            Ok(text) => text?,
            Err(error) => {
                self.problems.push(Problem {
                    place: name,
                    key: None,
                    message: format!("cannot be read: {error}"),
                });
                return Some(Vec::new());
            }
        };
        let sources = parse(&name, &text).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        });
        self.read.push(name);
        let folder = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
        let mut documents = Vec::new();
        for source in sources {
            let imports = self.imports(&source, &folder, depth);
            documents.push(Document { source, folder: folder.clone(), of_profile });
            documents.extend(imports);
        }
        Some(documents)
    }

    /// The documents that `spring.config.import` of a document names; they win over it.
    fn imports(&mut self, source: &Source, folder: &Path, depth: usize) -> Vec<Document> {
        let key = KeyPath::parse("spring.config.import");
        let mut documents = Vec::new();
        for property in super::layers::list([source], &key).unwrap_or_default() {
            for name in property.setting.text().unwrap_or_default().split(',').map(str::trim) {
                let (optional, rest) = match name.strip_prefix("optional:") {
                    Some(rest) => (true, rest),
                    None => (false, name),
                };
                let path = rest.strip_prefix("file:").unwrap_or(rest);
                let is_yaml = path.ends_with(".yml") || path.ends_with(".yaml");
                if !is_yaml && optional || name.is_empty() {
                    continue;
                }
                let found = if is_yaml && depth < IMPORT_DEPTH_LIMIT {
                    self.file(&folder.join(path), false, depth + 1)
                } else {
                    None
                };
                match found {
                    Some(more) => documents.extend(more),
                    None if optional => {}
                    None => self.problem(
                        property,
                        format!("expected a YAML file that exists, found \"{name}\""),
                    ),
                }
            }
        }
        documents
    }

    fn problem(&mut self, property: &Property, message: String) {
        self.problems.push(Problem {
            place: property.origin.to_string(),
            key: Some(property.path.to_string()),
            message,
        });
    }

    /// Settles the active profiles, keeps the documents in force, and adds the profiles' files.
    fn activate(
        &mut self,
        documents: Vec<Document>,
        locations: &[Location],
    ) -> (Vec<Document>, Vec<String>) {
        let (plain, mut rest): (Vec<_>, Vec<_>) =
            documents.into_iter().enumerate().partition(|(_, d)| !has_condition(&d.source));
        let mut order: Vec<usize> = plain.iter().map(|(at, _)| *at).collect();
        let mut folders: Vec<PathBuf> = plain.iter().map(|(_, d)| d.folder.clone()).collect();
        let winning_first = plain.into_iter().map(|(_, d)| d.source).rev().collect();
        let overlay = self.top.with_files(winning_first);
        let profiles = Profiles::settle(&overlay).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Profiles { active: Vec::new(), named: false }
        });
        let mut kept: Vec<(usize, Document)> = Vec::new();
        for source in overlay.into_files() {
            let (at, folder) = (order.pop(), folders.pop());
            if let (Some(at), Some(folder)) = (at, folder) {
                kept.push((at, Document { source, folder, of_profile: false }));
            }
        }
        rest.retain(|(_, document)| self.in_force(document, &profiles.active));
        kept.append(&mut rest);
        kept.sort_by_key(|(at, _)| *at);
        let mut documents: Vec<Document> = kept.into_iter().map(|(_, d)| d).collect();
        for name in &profiles.active {
            for location in locations {
                let of_profile = self.location(location, Some(name));
                let in_force: Vec<_> = of_profile
                    .into_iter()
                    .filter(|d| !has_condition(&d.source) || self.in_force(d, &profiles.active))
                    .collect();
                documents.extend(in_force);
            }
        }
        (documents, if profiles.named { profiles.active } else { Vec::new() })
    }

    fn in_force(&mut self, document: &Document, active: &[String]) -> bool {
        let source = &document.source;
        let platform = source.get(&KeyPath::parse(ON_PLATFORM)).and_then(|p| p.setting.text());
        if let Some(platform) = platform {
            let variables = self.inputs.environment.variables();
            let on = variables.iter().any(|(name, _)| name == "KUBERNETES_SERVICE_HOST");
            let wanted = match platform.trim().to_ascii_lowercase().as_str() {
                "kubernetes" => on,
                "none" => !on,
                _ => false,
            };
            if !wanted {
                return false;
            }
        }
        let Some(found) = super::layers::list([source], &KeyPath::parse(ON_PROFILE)) else {
            return true;
        };
        let expressions: Vec<String> =
            found.iter().filter_map(|p| p.setting.text()).map(str::to_owned).collect();
        profile::holds(&expressions, active).unwrap_or_else(|message| {
            self.problem(found[0], message);
            false
        })
    }

    /// What Spring refuses: profiles chosen where a profile must be active already, and the form
    /// that Spring Boot 2.4 took away.
    fn check_profile_keys(&mut self, document: &Document) {
        let source = &document.source;
        let old = super::layers::list([source], &KeyPath::parse("spring.profiles"));
        if let Some(property) = old.and_then(|found| found.first().copied()) {
            self.problem(
                property,
                "is not read any more; write spring.config.activate.on-profile".to_owned(),
            );
        }
        if !document.of_profile && !has_condition(source) {
            return;
        }
        for key in ["spring.profiles.active", "spring.profiles.include"] {
            let found = super::layers::list([source], &KeyPath::parse(key));
            if let Some(property) = found.and_then(|found| found.first().copied()) {
                let message =
                    "cannot stand in a document of a profile; move it to one that always holds";
                self.problem(property, message.to_owned());
            }
        }
    }
}

const ON_PROFILE: &str = "spring.config.activate.on-profile";
const ON_PLATFORM: &str = "spring.config.activate.on-cloud-platform";

fn has_condition(source: &Source) -> bool {
    [ON_PROFILE, ON_PLATFORM].iter().any(|key| source.touches(&KeyPath::parse(key)))
}

/// The active profiles, the one that wins last.
struct Profiles {
    active: Vec<String>,
    /// Somebody named them; else it is Spring's `default`.
    named: bool,
}

impl Profiles {
    fn settle(overlay: &super::layers::Overlay<'_>) -> Result<Self, Problem> {
        let mut active = overlay.texts("spring.profiles.include")?;
        active.extend(overlay.texts("spring.profiles.active")?);
        let named = !active.is_empty();
        if !named {
            active = overlay.texts("spring.profiles.default")?;
        }
        if active.is_empty() {
            active.push("default".to_owned());
        }
        // A group stands before its members, which may be groups again.
        for _ in 0..PROFILE_ROUNDS_LIMIT {
            let mut expanded: Vec<String> = Vec::new();
            for name in &active {
                let members = overlay.texts(&format!("spring.profiles.group.{name}"))?;
                for one in std::iter::once(name).chain(&members) {
                    if !expanded.contains(one) {
                        expanded.push(one.clone());
                    }
                }
            }
            if expanded == active {
                break;
            }
            active = expanded;
        }
        Ok(Self { active, named })
    }
}
