//! Rules of the workspace that no compiler checks: who may depend on whom, which libraries are
//! used and which are not, how files are laid out.

mod warnings;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// For each crate: what it may depend on in the workspace, and what its tests may besides.
const ARROWS: [(&str, &[&str], &[&str]); 6] = [
    ("core", &[], &[]),
    ("plugins", &["core"], &["benchmark"]),
    ("db", &["core"], &[]),
    ("admin", &["core", "db", "plugins"], &["benchmark"]),
    ("bootstrap", &["core", "plugins"], &["admin", "benchmark", "db"]),
    ("benchmark", &["bootstrap", "core", "plugins"], &["admin", "db"]),
];

/// Libraries that belong to the other side of an arrow.
const NOT_IN_CORE: [&str; 3] = ["axum", "sqlx", "utoipa"];

/// Libraries the product is built on.
const FOUNDATIONS: [&str; 10] = [
    "hyper",
    "moka",
    "regex",
    "reqwest",
    "serde_yaml",
    "sqlx",
    "tokio",
    "tower",
    "tower-http",
    "tracing",
];

/// Foundations that come with the feature that needs them; until then declared only.
const DEFERRED: [&str; 1] = ["moka"];

/// One crypto provider, and no C library that is not built along.
const FORBIDDEN: [&str; 6] = ["native-tls", "openssl", "openssl-sys", "ring", "rsa", "serde_yml"];

const MAX_LINES: usize = 500;

struct Package {
    folder: String,
    path: PathBuf,
    /// Dependencies of the library and the binaries, and of the build script.
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").into()
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn packages() -> Vec<Package> {
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"];
    let metadata: Value = serde_json::from_str(&cargo(&arguments)).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    packages.iter().map(package).collect()
}

fn package(json: &Value) -> Package {
    let manifest = Path::new(json["manifest_path"].as_str().expect("a manifest has a path"));
    let path = manifest.parent().expect("a manifest is in a folder").to_owned();
    let folder = path.file_name().expect("a folder has a name").to_string_lossy().into_owned();
    let (mut normal, mut dev) = (BTreeSet::new(), BTreeSet::new());
    for dependency in json["dependencies"].as_array().expect("a package has dependencies") {
        let name = dependency["name"].as_str().expect("a dependency has a name").to_owned();
        if dependency["kind"] == "dev" {
            dev.insert(name)
        } else {
            normal.insert(name)
        };
    }
    Package { folder, path, normal, dev }
}

/// All files of a crate with that ending, but for what builds and tools leave behind.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules" | "dist" | "results") {
                files(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

fn sources(package: &Package) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&package.path, ".rs", &mut found);
    found
}

/// The name a package has in source, where that is not its own with other dashes.
fn library_name(package: &str) -> String {
    if package == "md-5" { "md5".into() } else { package.replace('-', "_") }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn crates_depend_on_each_other_as_drawn() {
    let packages = packages();
    let arrows: BTreeMap<_, _> =
        ARROWS.iter().map(|(name, of, dev)| (*name, (*of, *dev))).collect();
    let known: Vec<_> = packages.iter().map(|package| package.folder.as_str()).collect();
    assert_eq!(known.len(), arrows.len(), "crates of the workspace: {known:?}");
    let mut wrong = Vec::new();
    for package in &packages {
        let name = package.folder.as_str();
        let (of, dev) = arrows.get(name).unwrap_or_else(|| panic!("no arrows drawn for {name}"));
        let ours = |set: &BTreeSet<String>| -> Vec<String> {
            set.iter().filter_map(|dep| dep.strip_prefix("longmen-")).map(str::to_owned).collect()
        };
        for other in ours(&package.normal) {
            if !of.contains(&other.as_str()) {
                wrong.push(format!("{name} -> {other}"));
            }
        }
        for other in ours(&package.dev) {
            let allowed =
                other == name || of.contains(&other.as_str()) || dev.contains(&other.as_str());
            if !allowed {
                wrong.push(format!("tests of {name} -> {other}"));
            }
        }
        for library in NOT_IN_CORE {
            if name == "core" && package.normal.contains(library) {
                wrong.push(format!("{name} -> {library}"));
            }
        }
    }
    assert!(wrong.is_empty(), "dependencies against the arrows: {wrong:#?}");
}

#[test]
fn foundations_are_declared_depended_on_and_used() {
    let manifest = read(&root().join("Cargo.toml"));
    let packages = packages();
    let mut missing = Vec::new();
    for library in FOUNDATIONS {
        if !manifest.lines().any(|line| line.starts_with(&format!("{library} = "))) {
            missing.push(format!("{library} is not declared in the workspace"));
        }
        if DEFERRED.contains(&library) {
            continue;
        }
        let word = format!("{}::", library.replace('-', "_"));
        let used =
            packages.iter().filter(|package| package.normal.contains(library)).any(|package| {
                let mut found = Vec::new();
                files(&package.path.join("src"), ".rs", &mut found);
                found.iter().any(|path| read(path).contains(&word))
            });
        if !used {
            missing.push(format!("{library} is no dependency of a crate that uses it"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_dependency_is_used() {
    let mut idle = Vec::new();
    for package in packages() {
        let texts: Vec<_> = sources(&package).iter().map(|path| read(path)).collect();
        for dependency in package.normal.union(&package.dev) {
            let word = library_name(dependency);
            let words = [format!("{word}::"), format!("use {word};"), format!("{word} as ")];
            let used = texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
            if !used {
                idle.push(format!("{}: {dependency}", package.folder));
            }
        }
    }
    assert!(idle.is_empty(), "dependencies that no source names: {idle:#?}");
}

#[test]
fn forbidden_libraries_stay_out() {
    let arguments =
        ["tree", "--workspace", "--offline", "--locked", "--prefix=none", "--format={p}"];
    let tree = cargo(&arguments);
    let built: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(built.contains("hyper"), "the list of what is built is empty or of another form");
    let found: Vec<_> = FORBIDDEN.iter().filter(|library| built.contains(*library)).collect();
    assert!(found.is_empty(), "forbidden: {found:?}; see `cargo tree -i` for who brings it");
}

#[test]
fn manifests_follow_the_workspace() {
    let mut wrong = Vec::new();
    for package in packages() {
        let text = read(&package.path.join("Cargo.toml"));
        if !text.contains("[lints]\nworkspace = true\n") {
            wrong.push(format!("{}: lints are not the workspace's", package.folder));
        }
        let mut dependencies = false;
        for line in text.lines() {
            if line.starts_with('[') {
                dependencies = line.ends_with("dependencies]");
            } else if dependencies
                && line.contains('=')
                && !line.starts_with('#')
                && !line.contains("workspace = true")
            {
                wrong.push(format!("{}: not by the workspace: {line}", package.folder));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_are_short_and_named_after_their_module() {
    let mut wrong = Vec::new();
    for path in packages().iter().flat_map(sources) {
        let lines = read(&path).lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{}: {lines} lines, at most {MAX_LINES}", path.display()));
        }
        if path.ends_with("mod.rs") {
            wrong.push(format!("{}: name it after its module", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_test_binary_per_crate() {
    for package in packages() {
        let Ok(entries) = fs::read_dir(package.path.join("tests")) else { continue };
        let binaries: Vec<_> = entries
            .map(|entry| entry.expect("an entry can be read").path())
            .filter(|path| {
                path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").is_file()
            })
            .collect();
        assert!(binaries.len() <= 1, "each is linked on its own: {binaries:?}");
    }
}

/// Every test that the page of field cases names, by module and function, is there.
#[test]
fn the_tests_named_by_the_page_of_field_cases_exist() {
    let page = read(&root().join("docs/field-cases.md"));
    let named: Vec<(&str, &str)> =
        page.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::")).collect();
    assert!(named.len() > 20, "{named:?}");
    let mut sources = Vec::new();
    for folder in ["bootstrap/tests/e2e", "core/tests/conformance"] {
        files(&root().join(folder), ".rs", &mut sources);
    }
    for (module, function) in named {
        let found = sources.iter().any(|path| {
            path.file_stem().is_some_and(|stem| stem == module)
                && read(path).contains(&format!("async fn {function}("))
        });
        assert!(found, "docs/field-cases.md names {module}::{function}, which is nowhere");
    }
}
