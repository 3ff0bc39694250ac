//! Makes a new migration or seed file rebuild the crate that embeds it.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=seed");
}
