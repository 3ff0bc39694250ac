//! Keys of the frameworks that a ShenYu gateway is built on.

use longmen_core::config::{KeySpec, Section};

const SPRING: &str = "Spring";
const REGISTRY: &str = "a registry client of Java";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Keys of other frameworks",
    about: "",
    keys: &[
        KeySpec::inert("spring.main.*", SPRING),
        KeySpec::inert("spring.application.*", SPRING),
        KeySpec::inert("spring.cloud.*", REGISTRY),
        KeySpec::inert("spring.*", SPRING),
        KeySpec::inert("eureka.*", REGISTRY),
        KeySpec::inert("dubbo.*", "Java's Dubbo client"),
        KeySpec::inert("sofa.*", "Java's Sofa client"),
    ],
};
