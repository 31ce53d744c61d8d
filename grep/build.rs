//! Links the program at a fixed address where the system allows it.
//!
//! The loader writes thousands of places of a position-independent executable at every start, which
//! takes about as long as searching a small file. What is given up is a random address of the
//! executable itself; libraries, stack and heap keep theirs.
//!
//! The unwinder, which only panics need, is linked into the program: its shared library would be
//! looked for, mapped and relocated at every start, a tenth of the time that searching a small file
//! takes in all. Rust names that library itself, so that a linker script of its name stands in for
//! it. Where the compiler driver has no static unwinder, the shared library stays.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        if let Some(folder) = static_unwinder() {
            println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
        }
    }
}

/// A folder in which `libgcc_s.so` is a script that names the static unwinder; `None` where there
/// is none.
fn static_unwinder() -> Option<PathBuf> {
    const ARCHIVE: &str = "libgcc_eh.a";
    let found = std::process::Command::new("cc").arg(format!("-print-file-name={ARCHIVE}")).output().ok()?;
    let archive = String::from_utf8(found.stdout).ok()?;
    // Without a path, the driver does not have it.
    if !Path::new(archive.trim()).is_absolute() || std::env::var("HOST") != std::env::var("TARGET") {
        return None;
    }
    let folder = Path::new(&std::env::var_os("OUT_DIR")?).join("unwinder");
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").ok()?;
    Some(folder)
}
