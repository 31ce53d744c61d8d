//! Compiles a target with `cc` into cargo's directory for test files, once per test run.

use super::{How, Target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `.data` of an annotated program lies; the comments in the sources count on it.
const DATA: &str = "-Wl,--section-start=.data=0x600000";

/// Directory of the sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("targets")
}

/// The target's source file.
pub(crate) fn source(target: &Target) -> PathBuf {
    let extension = match target.how {
        How::Annotated | How::Assembly => "s",
        How::C(_) => "c",
    };
    sources().join(source_stem(target.name)).with_extension(extension)
}

/// `qsort_static` and `qsort_dynamic` are built from `qsort.c`.
fn source_stem(name: &str) -> &str {
    name.trim_end_matches("_static").trim_end_matches("_dynamic")
}

/// Compiles `target` and returns the executable's path.
pub(crate) fn build(target: &Target) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets");
    std::fs::create_dir_all(&directory).expect("the directory for test files can be made");
    let executable = directory.join(target.name);
    let mut cc = Command::new("cc");
    match target.how {
        How::Annotated => cc.args(["-nostdlib", "-static", DATA]),
        How::Assembly => cc.args(["-nostdlib", "-static"]),
        How::C(flags) => cc.args(["-O1", "-g"]).args(flags),
    };
    cc.arg("-Wl,-z,noexecstack")
        .arg("-I")
        .arg(sources())
        .arg("-o")
        .arg(&executable)
        .arg(source(target))
        .arg("-lm");
    let output = cc.output().expect("the targets need a C compiler named cc: apt-get install gcc libc6-dev");
    assert!(output.status.success(), "{}:\n{}", target.name, String::from_utf8_lossy(&output.stderr));
    executable
}
