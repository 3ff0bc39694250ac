//! The mock upstream and the measuring tools as a user sees them.

mod edits;
mod fake;
mod load;
mod origin;
