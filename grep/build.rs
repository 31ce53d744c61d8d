//! Links the program at a fixed address where the system allows it.
//!
//! The loader writes thousands of places of a position-independent executable at every start, which
//! takes about as long as searching a small file. What is given up is a random address of the
//! executable itself; libraries, stack and heap keep theirs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
