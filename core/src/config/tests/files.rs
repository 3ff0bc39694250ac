//! Where files are found, profiles, imports.

use super::{Machine, Notice};

#[test]
fn without_a_file_the_shipped_text_counts() {
    let machine = Machine { arguments: Vec::new(), environment: super::MemoryEnvironment::new() };
    assert_eq!(machine.ok().name, "shipped");
    let text = "no configuration file found: the built-in one is in force";
    assert_eq!(machine.notices(), [Notice::info(text)]);
}

#[test]
fn neighbours_of_the_default_file() {
    let machine = Machine::new("shenyu: {name: here, mode: shared}")
        .file("config/application.yaml", "shenyu.name: config");
    let small = machine.ok();
    assert_eq!((small.name.as_str(), small.mode.as_str()), ("config", "shared"));
    let text = "configuration read from application.yml, config/application.yaml";
    assert_eq!(machine.notices(), [Notice::info(text)]);
    let conf = Machine { arguments: Vec::new(), environment: super::MemoryEnvironment::new() }
        .file("conf/application.yml", "shenyu.name: conf");
    assert_eq!(conf.ok().name, "conf");
}

#[test]
fn a_file_can_be_named() {
    let machine =
        || Machine::new("shenyu.name: default").file("/etc/l/my.yml", "shenyu.name: mine");
    assert_eq!(machine().argument("--config=/etc/l/my.yml").ok().name, "mine");
    assert_eq!(machine().argument("--spring.config.location=file:/etc/l/my.yml").ok().name, "mine");
    assert_eq!(machine().variable("SPRING_CONFIG_LOCATION", "/etc/l/my.yml").ok().name, "mine");
    assert_eq!(
        machine()
            .variable("SPRING_CONFIG_ADDITIONAL_LOCATION", "optional:/x/,/etc/l/my.yml")
            .ok()
            .name,
        "mine"
    );
    let folder = machine()
        .variable("SPRING_CONFIG_LOCATION", "/etc/l/")
        .variable("SPRING_CONFIG_NAME", "my");
    assert_eq!(folder.ok().name, "mine");
    // Profiles are looked for beside it.
    let profile = machine()
        .file("/etc/l/my-p.yml", "shenyu.name: p")
        .argument("--config=/etc/l/my.yml")
        .argument("--spring.profiles.active=p");
    assert_eq!(profile.ok().name, "p");
}

#[test]
fn a_named_file_must_exist() {
    for (machine, want) in [
        (
            Machine::new("").argument("--config=/none.yml"),
            "argument --config: there is no file /none.yml",
        ),
        (
            Machine::new("").variable("SPRING_CONFIG_LOCATION", "/etc/none/"),
            "spring.config.location: there is no file /etc/none/application.yml",
        ),
        (
            Machine::new("").argument("--config=a.properties"),
            "argument --config: expected a YAML file or a folder, found \"a.properties\"",
        ),
    ] {
        assert_eq!(machine.problems(), [want]);
    }
    let optional = Machine::new("").argument("--config=optional:/none.yml");
    assert_eq!(optional.ok().name, "shipped");
}

#[test]
fn later_documents_win() {
    let small = Machine::new("shenyu: {name: one, mode: shared}\n---\nshenyu: {name: two}\n").ok();
    assert_eq!((small.name.as_str(), small.mode.as_str()), ("two", "shared"));
}

#[test]
fn documents_of_profiles() {
    let yaml = "shenyu.name: base\n---\nspring.config.activate.on-profile: prod\nshenyu.name: prod\n---\nspring:\n  config:\n    activate:\n      on-profile: \"!prod & eu\"\nshenyu.name: eu\n";
    let name =
        |active: &str| Machine::new(yaml).variable("SPRING_PROFILES_ACTIVE", active).ok().name;
    assert_eq!(Machine::new(yaml).ok().name, "base");
    assert_eq!(name("prod"), "prod");
    assert_eq!(name("prod,eu"), "prod");
    assert_eq!(name("eu"), "eu");
    let on_default =
        "shenyu.name: base\n---\nspring.config.activate.on-profile: default\nshenyu.name: d\n";
    assert_eq!(Machine::new(on_default).ok().name, "d");
    let platform = "shenyu.name: base\n---\nspring.config.activate.on-cloud-platform: kubernetes\nshenyu.name: k\n";
    assert_eq!(Machine::new(platform).ok().name, "base");
    let on = Machine::new(platform).variable("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    assert_eq!(on.ok().name, "k");
}

#[test]
fn files_of_profiles_win_in_order() {
    let machine = |active: &str| {
        Machine::new(&format!("spring.profiles.active: {active}\nshenyu.name: base"))
            .file("application-a.yml", "shenyu: {name: a, mode: shared}")
            .file(
                "application-b.yaml",
                "shenyu.name: b\n---\nspring.config.activate.on-profile: x\nshenyu.name: x\n",
            )
    };
    assert_eq!(machine("a,b").ok().name, "b");
    assert_eq!(machine("a,b").ok().mode, "shared");
    assert_eq!(machine("b,a").ok().name, "a");
    assert_eq!(machine("[a, b]").ok().name, "b");
    assert_eq!(machine("none").ok().name, "base");
    let notices = machine("a,b").notices();
    assert_eq!(
        notices,
        [
            Notice::info(
                "configuration read from application.yml, application-a.yml, application-b.yaml"
            ),
            Notice::info("active profiles: a, b"),
        ]
    );
    // A variable replaces what the file says; a placeholder may choose.
    assert_eq!(machine("a").variable("SPRING_PROFILES_ACTIVE", "b").ok().name, "b");
    assert_eq!(machine("'${P:a}'").variable("P", "b").ok().name, "b");
}

#[test]
fn included_profiles_and_groups() {
    let machine = Machine::new(
        "spring: {profiles: {active: main, include: [extra], group: {main: [part]}}}\nshenyu.name: base",
    )
    .file("application-extra.yml", "shenyu: {name: extra, mode: shared}")
    .file("application-part.yml", "shenyu: {name: part}");
    let small = machine.ok();
    assert_eq!((small.name.as_str(), small.mode.as_str()), ("part", "shared"));
    assert!(machine.notices().contains(&Notice::info("active profiles: extra, main, part")));
    // A circle of groups ends.
    let circle = Machine::new("spring: {profiles: {active: a, group: {a: b, b: a}}}");
    assert!(circle.notices().contains(&Notice::info("active profiles: a, b")));
}

#[test]
fn what_spring_refuses_about_profiles() {
    for (yaml, want) in [
        (
            "spring.profiles: prod\nshenyu.name: x\n",
            "application.yml:1: spring.profiles: is not read any more; write spring.config.activate.on-profile",
        ),
        (
            "spring.config.activate.on-profile: default\nspring.profiles.active: x\n",
            "application.yml:2: spring.profiles.active: cannot stand in a document of a profile; move it to one that always holds",
        ),
        (
            "a: 1\n---\nspring.config.activate.on-profile: 'a & b | c'\n",
            "application.yml:3: spring.config.activate.on-profile: expected a profile expression such as prod, !test or \"a & b\", found \"a & b | c\"",
        ),
    ] {
        assert_eq!(Machine::new(yaml).problems(), [want], "{yaml}");
    }
    let in_file = Machine::new("spring.profiles.active: p")
        .file("application-p.yml", "spring.profiles.include: q");
    assert_eq!(
        in_file.problems(),
        [
            "application-p.yml:1: spring.profiles.include: cannot stand in a document of a profile; move it to one that always holds"
        ]
    );
}

#[test]
fn imports() {
    let machine = Machine::new("spring.config.import: 'optional:file:./none.yml, more/x.yml'\nshenyu: {name: base, mode: shared}")
        .file("more/x.yml", "spring.config.import: y.yml\nshenyu.name: x")
        .file("more/y.yml", "server.port: 81");
    let small = machine.ok();
    assert_eq!((small.name.as_str(), small.mode.as_str(), small.port), ("x", "shared", 81));
    for (name, found) in [("none.yml", "none.yml"), ("'configtree:/run/'", "configtree:/run/")] {
        let machine = Machine::new(&format!("a: 1\nspring.config.import: {name}\n"));
        let want = format!(
            "application.yml:2: spring.config.import: expected a YAML file that exists, found \"{found}\""
        );
        assert_eq!(machine.problems(), [want]);
    }
    let circle = Machine::new("spring.config.import: application.yml");
    assert_eq!(circle.problems().len(), 1);
}
