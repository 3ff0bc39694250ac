//! The admin from outside: over HTTP, in this process, on a fresh database each.

mod admin_rest;
mod compare;
mod document;
mod golden;
mod permissions;
mod replay;
mod support;
mod sync;
