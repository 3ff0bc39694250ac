//! The engine on a small table of its own.

use std::path::Path;
use std::time::Duration;

use super::{
    BYTES, ConfigError, Inputs, KeySpec, Kind, Loaded, MILLIS, MemoryEnvironment, Notice, Reader,
    Schema, Secret, Section, TEXTS, load, spring,
};

mod files;
mod layering;
mod messages;

static SCHEMA: Schema = Schema {
    name: "Test",
    sections: &[
        Section {
            title: "Test",
            about: "",
            keys: &[
                KeySpec::new("server.port", Kind::Port, "80", ""),
                KeySpec::new("DATABASE_URL", Kind::SecretUrl, "", ""),
                KeySpec::new("shenyu.name", Kind::Text, "none", "").or(&["shenyu.oldName"]),
                KeySpec::new("shenyu.token", Kind::Secret, "", ""),
                KeySpec::new("shenyu.http.workerCount", Kind::Int { min: 0, max: 64 }, "0", ""),
                KeySpec::new("shenyu.http.accessLog", Kind::Bool, "false", ""),
                KeySpec::new("shenyu.http.timeout", MILLIS, "3000", ""),
                KeySpec::new("shenyu.http.limit", BYTES, "2MB", ""),
                KeySpec::new("shenyu.init_script", Kind::Text, "", ""),
                KeySpec::new("shenyu.paths", TEXTS, "/a, /b", ""),
                KeySpec::new("shenyu.mode", Kind::Choice(&["perCore", "shared"]), "perCore", ""),
                KeySpec::new("shenyu.plugins.*.enabled", Kind::Bool, "", ""),
                KeySpec::new("shenyu.list[].name", Kind::Text, "", ""),
                KeySpec::new("shenyu.list[].size", BYTES, "", ""),
                KeySpec::inert("shenyu.jvm.*", "Java"),
                KeySpec::inert("spring.main.*", "Java"),
                KeySpec::pending("shenyu.later", Kind::Text, "not yet"),
                KeySpec::pending("shenyu.laterSwitch", Kind::Bool, "not yet"),
                KeySpec::refused("server.ssl.certificate", "there is no TLS here"),
            ],
        },
        spring::SECTION,
    ],
};

/// What the small table reads into.
#[derive(Debug, PartialEq)]
struct Small {
    port: u16,
    database: Option<Secret>,
    name: String,
    token: Option<Secret>,
    workers: usize,
    access_log: bool,
    timeout: Duration,
    limit: u64,
    init_script: Option<String>,
    paths: Vec<String>,
    mode: String,
    plugins: Vec<(String, bool)>,
    list: Vec<(Option<String>, Option<u64>)>,
}

fn read(reader: &mut Reader<'_>) -> Small {
    let mut plugins = reader.entries("shenyu.plugins.*.enabled");
    plugins.sort();
    Small {
        port: reader.get("server.port"),
        database: reader.optional("DATABASE_URL"),
        name: reader.get("shenyu.name"),
        token: reader.secret("shenyu.token"),
        workers: reader.get("shenyu.http.workerCount"),
        access_log: reader.get("shenyu.http.accessLog"),
        timeout: reader.get("shenyu.http.timeout"),
        limit: reader.get("shenyu.http.limit"),
        init_script: reader.optional("shenyu.init_script"),
        paths: reader.list("shenyu.paths"),
        mode: reader.get("shenyu.mode"),
        plugins,
        list: (0..reader.elements("shenyu.list"))
            .map(|at| {
                (reader.member("shenyu.list[].name", at), reader.member("shenyu.list[].size", at))
            })
            .collect(),
    }
}

/// A machine with one file and what a test adds.
struct Machine {
    arguments: Vec<String>,
    environment: MemoryEnvironment,
}

impl Machine {
    fn new(application_yml: &str) -> Self {
        let environment = MemoryEnvironment::new().with_file("application.yml", application_yml);
        Self { arguments: Vec::new(), environment }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment = self.environment.with_variable(name, value);
        self
    }

    fn file(mut self, path: &str, text: &str) -> Self {
        self.environment = self.environment.with_file(path, text);
        self
    }

    fn argument(mut self, text: &str) -> Self {
        self.arguments.push(text.to_owned());
        self
    }

    fn load(&self) -> Result<Loaded<Small>, ConfigError> {
        let inputs = Inputs {
            arguments: &self.arguments,
            environment: &self.environment,
            default_path: Path::new("application.yml"),
            shipped: "shenyu.name: shipped",
            roots: &SCHEMA.roots(),
        };
        load(&SCHEMA, &inputs, read)
    }

    fn ok(&self) -> Small {
        self.load().map_or_else(|e| panic!("{e}"), |loaded| loaded.config)
    }

    fn notices(&self) -> Vec<Notice> {
        self.load().map_or_else(|e| panic!("{e}"), |loaded| loaded.notices)
    }

    /// The problems as lines.
    fn problems(&self) -> Vec<String> {
        match self.load() {
            Ok(loaded) => panic!("loaded {:?}", loaded.config),
            Err(error) => error.problems.iter().map(ToString::to_string).collect(),
        }
    }
}
