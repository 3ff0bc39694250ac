//! The mock upstream as a client sees it.

mod origin;
