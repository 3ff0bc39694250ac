//! The admin's binary.
fn main() {}
