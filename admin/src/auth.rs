//! Who calls: passwords, tokens, and what their user may do.
//!
//! A token is an HS256 JWT keyed by the stored password hash of its user, so that a changed password
//! ends every token. Nothing about a session is stored but the last client id: a second log-in with
//! a client id ends the tokens of the first.
//!
//! Source: ShenYu 2.7.1 admin, log-in and token filter.

mod aes;
mod caller;
mod check;
mod guard;
mod password;
mod patterns;
mod token;

pub use aes::PasswordCipher;
pub use caller::Caller;
pub use guard::{guard_super_user, password_age_fault};
pub use password::{Passwords, Verdict, legacy_hash};
pub use patterns::PathPatterns;
pub use token::{Claims, TOKEN_HEADER, issue};

pub(crate) use check::{Gate, authenticated, check_token};
