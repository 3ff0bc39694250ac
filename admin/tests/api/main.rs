//! The admin from outside: over HTTP, in this process, on a fresh database each.

mod admin_rest;
mod checks;
mod compare;
mod document;
mod examples;
mod golden;
mod limits;
mod login;
mod odd_texts;
mod permissions;
mod plugins;
mod polling;
mod registration;
mod replay;
mod resources_lists;
mod resources_meta_data;
mod resources_selectors;
mod resources_upstreams;
mod retries;
mod scene;
mod start;
mod support;
mod sync;
