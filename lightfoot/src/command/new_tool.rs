//! `lightfoot new-tool NAME`: creates a crate with a tool of the user's own, ready to build and
//! run.
//!
//! It has three files: a manifest, `src/main.rs` with a tool that counts loads and stores by
//! function, and a README with its commands. The tool depends on crates `instrument` and `symbol`
//! by path, in the folder that `--workspace` names, or else in that from which this lightfoot was
//! built, if it still exists. Nothing is built here, and no existing file is overwritten.

use crate::cli::NewTool;
use anyhow::{Context, Result};
use present::exit::refused;
use present::output::print;
use std::path::{Path, PathBuf};

/// The workspace that this lightfoot was built from.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const MAIN: &str = include_str!("template/main.rs.txt");
const MANIFEST: &str = include_str!("template/Cargo.toml.txt");
const README: &str = include_str!("template/README.md.txt");

pub(super) fn run(options: &NewTool) -> Result<u8> {
    let name = options.name.to_str().filter(|name| is_crate_name(name)).ok_or_else(|| {
        refused(format!(
            "{} is no name for a crate: small letters, digits, - and _, a letter first",
            options.name.display()
        ))
    })?;
    let folder = options.output.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return Err(refused(format!(
            "{} exists already: give another name, or a folder with -o",
            folder.display()
        )));
    }
    let workspace = workspace(options.workspace.as_deref())?;
    write(&folder, name, &workspace).with_context(|| format!("cannot write {}", folder.display()))?;
    let shown = folder.display();
    print(&format!(
        "{shown} is ready: cargo run --release --manifest-path {shown}/Cargo.toml -- /bin/true\n"
    ))?;
    Ok(0)
}

fn is_crate_name(name: &str) -> bool {
    let allowed = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-' || character == '_'
    };
    name.starts_with(|character: char| character.is_ascii_lowercase()) && name.chars().all(allowed)
}

/// The folder that holds crates `instrument` and `symbol`.
fn workspace(given: Option<&Path>) -> Result<PathBuf> {
    let folder = given.unwrap_or(Path::new(BUILT_IN));
    let found = folder.canonicalize().ok().filter(|folder| folder.join("instrument/Cargo.toml").is_file());
    found.ok_or_else(|| {
        let what = if given.is_some() { "given" } else { "that lightfoot was built in" };
        refused(format!(
            "the folder {what}, {}, holds no crate instrument: give lightfoot's sources with --workspace DIR",
            folder.display()
        ))
    })
}

fn write(folder: &Path, name: &str, sources: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("src"))?;
    // A literal string of TOML would end at a quote, so a basic string with escapes is used.
    let path = sources.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let fill = |text: &str| text.replace("@NAME@", name).replace("@SOURCES@", &path);
    std::fs::write(folder.join("Cargo.toml"), fill(MANIFEST))?;
    std::fs::write(folder.join("src/main.rs"), fill(MAIN))?;
    std::fs::write(folder.join("README.md"), fill(README))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_crates() {
        for name in ["tool", "my-tool_2"] {
            assert!(is_crate_name(name), "{name}");
        }
        for name in ["", "2tool", "-x", "Tool", "a b", "ä", "a/b"] {
            assert!(!is_crate_name(name), "{name}");
        }
    }

    #[test]
    fn a_folder_without_the_engine_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let said = workspace(Some(folder.path())).unwrap_err().to_string();
        assert!(said.contains("--workspace") && said.contains(folder.path().to_str().unwrap()), "{said}");
    }
}
