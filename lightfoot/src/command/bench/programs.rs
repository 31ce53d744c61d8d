//! The programs whose benchmarks are counted: those that cargo builds, or those that are given.

use crate::cli::Bench;
use anyhow::{Context, Result};
use memchr::memmem;
use present::exit::{Failure, USAGE};
use present::order::SortRows;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// By these bytes a program of benchmarks is known; they stand in `bench/src/runner.rs` and in the
/// C header.
const PROTOCOL: &[u8] = b"lightfoot-bench protocol: 1\0";

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    /// Empty where cargo did not build it.
    pub(super) package: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The folder that it runs in, and its package's: cargo gives both to benchmarks.
    pub(super) folder: Option<PathBuf>,
}

/// What a program understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It lists and chooses benchmarks.
    Benchmarks,
    /// It has marked regions, perhaps.
    Regions,
}

/// What was found.
pub(super) struct Found {
    pub(super) programs: Vec<Program>,
    /// Cargo's folder for what it builds.
    pub(super) target: Option<PathBuf>,
    /// Programs that are others' benchmarks.
    pub(super) skipped: Vec<String>,
}

/// Builds the programs, or takes those that the options name.
///
/// # Errors
/// When cargo fails, when a program cannot be read, and when there is none.
pub(super) fn find(options: &Bench) -> Result<Found> {
    if options.program.is_empty() {
        return build(options);
    }
    let programs = options.program.iter().map(|file| {
        let kind = kind(file)?;
        let file = file.canonicalize().with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Program { file, package: String::new(), name, kind, folder: None })
    });
    Ok(Found { programs: programs.collect::<Result<_>>()?, target: None, skipped: Vec::new() })
}

fn kind(file: &Path) -> Result<Kind> {
    let bytes = std::fs::read(file)
        .with_context(|| format!("cannot read program {}: name an executable file", file.display()))?;
    Ok(if memmem::find(&bytes, PROTOCOL).is_some() { Kind::Benchmarks } else { Kind::Regions })
}

fn cargo(options: &Bench, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    if let Some(manifest) = &options.manifest_path {
        command.arg("--manifest-path").arg(manifest);
    }
    command
}

/// The output of a command of cargo.
fn output(mut command: Command, what: &str) -> Result<Vec<u8>> {
    let remedy = "install cargo, or name programs that are built with --program";
    let ran = command.output().with_context(|| format!("cannot run cargo: {remedy}"))?;
    if !ran.status.success() {
        let sentence = format!("cargo cannot {what}: see what it says above");
        return Err(Failure { status: USAGE, sentence }.into());
    }
    Ok(ran.stdout)
}

fn build(options: &Bench) -> Result<Found> {
    let mut command = cargo(options, &["bench", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut with = |option: &str, value: &str| _ = command.arg(option).arg(value);
    options.package.iter().for_each(|package| with("--package", package));
    options.features.iter().for_each(|features| with("--features", features));
    match options.bench.as_slice() {
        // Libraries and commands have benchmarks of another kind.
        [] => _ = command.arg("--benches"),
        some => some.iter().for_each(|name| _ = command.arg("--bench").arg(name)),
    }
    command.args(&options.cargo);
    let built = output(command, "build the benchmarks")?;
    let mut found = Found { programs: Vec::new(), target: target(options)?, skipped: Vec::new() };
    for line in built.split(|&byte| byte == b'\n') {
        let Some(program) = serde_json::from_slice(line).ok().and_then(|message| artifact(&message)) else {
            continue;
        };
        match kind(&program.file)? {
            Kind::Benchmarks => found.programs.push(program),
            Kind::Regions => found.skipped.push(program.name),
        }
    }
    found.programs.sort_rows(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    if found.programs.is_empty() {
        let others = match found.skipped.as_slice() {
            [] => String::from("there is no [[bench]] here"),
            others => format!("those of {} are others'", others.join(", ")),
        };
        let sentence = format!(
            "there are no benchmarks of crate lightfoot-bench: {others}; see docs/continuous-integration.md, or name a \
             built program with --program"
        );
        return Err(Failure { status: USAGE, sentence }.into());
    }
    Ok(found)
}

/// The program of a message of cargo's about a `[[bench]]`.
fn artifact(message: &Value) -> Option<Program> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let target = &message["target"];
    if message["reason"] != "compiler-artifact" || target["kind"] != serde_json::json!(["bench"]) {
        return None;
    }
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    Some(Program {
        file: text(&message["executable"])?.into(),
        package: package(&text(&message["package_id"])?),
        name: text(&target["name"])?,
        kind: Kind::Benchmarks,
        folder: manifest.parent().map(Path::to_owned),
    })
}

/// The name in a package's identity: `path+file:///folder/name#0.1.0` or `…#name@0.1.0`.
fn package(id: &str) -> String {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next().unwrap_or(place).to_owned(),
    }
}

/// Cargo's folder for what it builds.
fn target(options: &Bench) -> Result<Option<PathBuf>> {
    let command = cargo(options, &["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let metadata: Value = serde_json::from_slice(&output(command, "describe the package")?)?;
    Ok(metadata["target_directory"].as_str().map(PathBuf::from))
}

impl Program {
    /// The words behind the program's name that choose benchmarks.
    pub(super) fn choice(&self, options: &Bench) -> Vec<OsString> {
        let mut words = Vec::new();
        if self.kind == Kind::Benchmarks {
            words.extend(options.cold.then(|| "--cold".into()));
            words.extend(options.exact.then(|| "--exact".into()));
            words.extend(options.filters.iter().map(OsString::from));
        }
        words
    }

    /// Gives a command what cargo gives to benchmarks.
    pub(super) fn place(&self, command: &mut Command) {
        if let Some(folder) = &self.folder {
            command
                .current_dir(folder)
                .env("CARGO_MANIFEST_DIR", folder)
                .env("CARGO_PKG_NAME", &self.package);
        }
    }

    /// The names of the chosen benchmarks, in their order; none for a program of regions.
    ///
    /// # Errors
    /// When the program cannot be run, or does not list them.
    pub(super) fn list(&self, options: &Bench) -> Result<Vec<String>> {
        if self.kind == Kind::Regions {
            return Ok(Vec::new());
        }
        let mut command = Command::new(&self.file);
        command.arg("--list").args(self.choice(options)).stdin(Stdio::null()).stderr(Stdio::inherit());
        self.place(&mut command);
        let ran = command.output().with_context(|| format!("cannot run {}", self.file.display()))?;
        if !ran.status.success() {
            anyhow::bail!("{} cannot list its benchmarks: run it with --list", self.file.display());
        }
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        Ok(text.lines().filter_map(|line| Some(line.strip_suffix(": benchmark")?.to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_in_both_forms_of_an_identity() {
        assert_eq!(package("path+file:///a/b/sorting#0.1.0"), "sorting");
        assert_eq!(package("path+file:///a/b#sorting@0.1.0"), "sorting");
        assert_eq!(package("registry+https://example.org/index#sorting@1.2.3"), "sorting");
    }

    #[test]
    fn only_benches_with_an_executable_count() {
        let message = |kind: &str, executable: Value| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///a/sorting#0.1.0",
                "manifest_path": "/a/sorting/Cargo.toml",
                "target": {"kind": [kind], "name": "speed"},
                "executable": executable,
            })
        };
        let program = artifact(&message("bench", "/a/target/speed".into())).unwrap();
        assert_eq!((&*program.package, &*program.name), ("sorting", "speed"));
        assert_eq!(program.folder.as_deref(), Some(Path::new("/a/sorting")));
        assert!(artifact(&message("lib", "/a/target/speed".into())).is_none());
        assert!(artifact(&message("bench", Value::Null)).is_none());
    }
}
