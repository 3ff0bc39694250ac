//! The keys by which Spring finds and chooses its files; they are understood before all others.

use super::{KeySpec, Kind, Section, TEXTS};

/// The keys of this section.
pub const SECTION: Section = Section {
    title: "Files and profiles",
    about: "Profiles, documents and imports work as in Spring.",
    keys: &[
        KeySpec::new(
            "config",
            TEXTS,
            "",
            "The file to read in place of `application.yml`, as argument: `--config=PATH`.",
        ),
        KeySpec::new(
            "spring.config.location",
            TEXTS,
            "",
            "Files and folders to read in place of `application.yml`; as variable or argument.",
        ),
        KeySpec::new(
            "spring.config.additional-location",
            TEXTS,
            "",
            "Files and folders to read besides; as variable or argument.",
        ),
        KeySpec::new(
            "spring.config.name",
            TEXTS,
            "application",
            "The name of the files looked for in folders; as variable or argument.",
        ),
        KeySpec::new(
            "spring.config.import",
            TEXTS,
            "",
            "More YAML files, relative to the file that names them; `optional:` in front where one \
             may be missing.",
        ),
        KeySpec::new(
            "spring.config.activate.on-profile",
            TEXTS,
            "",
            "The document counts only where one of these expressions holds.",
        ),
        KeySpec::new(
            "spring.config.activate.on-cloud-platform",
            Kind::Text,
            "",
            "The document counts only on `kubernetes`, or elsewhere for `none`.",
        ),
        KeySpec::new("spring.profiles.active", TEXTS, "", "Profiles in force; the last one wins."),
        KeySpec::new(
            "spring.profiles.include",
            TEXTS,
            "",
            "Profiles in force besides; they come before the active ones.",
        ),
        KeySpec::new(
            "spring.profiles.default",
            TEXTS,
            "default",
            "The profile in force where none is named.",
        ),
        KeySpec::new("spring.profiles.group.*", TEXTS, "", "Profiles that a profile brings in."),
        KeySpec::new(
            "spring.application.json",
            Kind::Text,
            "",
            "More keys as one JSON object; as variable or argument.",
        ),
    ],
};
