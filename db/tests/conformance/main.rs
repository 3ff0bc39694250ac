//! One suite, two stores: every test runs on SQLite and on PostgreSQL.

mod support;

mod bindings;
mod catalogue;
mod changes;
mod concurrency;
mod gateways;
mod ids;
mod instances;
mod leases;
mod lists;
mod meta_data;
mod namespaces;
mod registrations;
mod rules;
mod selectors;
mod setup;
mod state;
mod users;
mod wake;
