//! The gateway from outside, and the rules of the workspace.

mod tidy;
