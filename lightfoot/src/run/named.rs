//! The machines that `--machine` names, and the description that `lightfoot doctor --measure`
//! keeps.
//!
//! The description lies in a folder of the user's cache, because measuring again replaces it. It
//! names the processor that it was measured on, so that a home directory which several machines
//! share describes none of them by the figures of another.

use anyhow::{anyhow, bail, Context, Result};
use machine::{Error, Machine, PRESETS};
use private_folder::PrivateFolder;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The name of the measured machine.
pub const MEASURED: &str = "measured";

/// The file of the description.
const FILE: &str = "measured.toml";

/// lightfoot's folder for what can be made again, by the XDG base directory specification.
pub fn cache_folder() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let cache = named("XDG_CACHE_HOME").and_then(|path| absolute(path.into()));
    // A home directory that does not exist is not created. Callers that clear the environment leave
    // the one that the system's list of users names.
    let home = || std::env::home_dir().filter(|home| home.is_dir());
    let cache = cache.or_else(|| home().and_then(|home| absolute(home.join(".cache"))))?;
    Some(cache.join("lightfoot"))
}

/// The machine that `name` means: `host`, `measured`, a preset, or the path of a TOML file.
///
/// # Errors
/// When it is none of these, is no description, or has not been measured.
pub fn machine(name: &OsStr) -> Result<Machine> {
    if name == MEASURED {
        return measured()?.ok_or_else(|| {
            anyhow!(
                "this machine has not been measured: run 'lightfoot doctor --measure', or use --machine host"
            )
        });
    }
    Machine::named(name).map_err(|error| match error {
        Error::Unknown { name, presets } => {
            anyhow!(
                "no machine \"{name}\": expected host, measured, a TOML file, or one of {}",
                presets.join(", ")
            )
        }
        other => other.into(),
    })
}

/// Names and descriptions of the machines that can be simulated, files left out.
pub fn listed() -> Vec<(&'static str, String)> {
    let own = match measured() {
        Ok(Some(machine)) => machine.description,
        Ok(None) => "This machine; not measured yet: lightfoot doctor --measure does it".into(),
        Err(error) => format!("{error:#}"),
    };
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.description.to_owned()));
    [("host", "This machine, as it reports itself".to_owned()), (MEASURED, own)]
        .into_iter()
        .chain(presets)
        .collect()
}

/// The measured description of this machine; `None` if there is none.
///
/// # Errors
/// When the file cannot be read, or describes another machine.
fn measured() -> Result<Option<Machine>> {
    let Some(path) = folder() else { return Ok(None) };
    match read(&path)? {
        None => Ok(None),
        Some(machine) => of_this_host(machine, &Machine::host(), &path.join(FILE)).map(Some),
    }
}

/// Reads the description of a folder.
fn read(folder: &Path) -> Result<Option<Machine>> {
    let file = PrivateFolder::open(folder).and_then(|opened| opened.file(FILE));
    let Some((mut file, _)) = file else { return Ok(None) };
    let path = folder.join(FILE);
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(|| format!("{}: cannot be read", path.display()))?;
    Ok(Some(Machine::from_toml(&text, &path)?))
}

/// Refuses a description that was measured on another processor.
fn of_this_host(machine: Machine, host: &Machine, path: &Path) -> Result<Machine> {
    if machine.description.starts_with(&format!("{}, measured on ", host.description)) {
        return Ok(machine);
    }
    bail!(
        "{} describes another machine ({}): run 'lightfoot doctor --measure' on this one",
        path.display(),
        machine.description
    )
}

/// Keeps a measured description, in place of a former one, and returns its path.
///
/// # Errors
/// When there is no folder for it, or it cannot be written.
pub fn keep(machine: &Machine) -> Result<PathBuf> {
    const REMEDY: &str = "set XDG_CACHE_HOME to a folder of your own that can be written to";
    let path = folder().with_context(|| format!("no folder to keep the description in: {REMEDY}"))?;
    let folder = PrivateFolder::make(&path).with_context(|| {
        format!("{}: cannot be made, or others may write to it: {REMEDY}", path.display())
    })?;
    write(&folder, machine)
        .with_context(|| format!("{}: the description cannot be written: {REMEDY}", path.display()))?;
    Ok(path.join(FILE))
}

/// Writes the file beside its name first, so that a reader finds the old one or the new one whole.
fn write(folder: &PrivateFolder, machine: &Machine) -> std::io::Result<()> {
    let unfinished = format!("{FILE}.{}", std::process::id());
    // One that a killed process of this number has left.
    let _ = folder.remove(&unfinished);
    let mut file = folder.create(&unfinished)?;
    file.write_all(machine.to_toml().as_bytes())?;
    file.sync_all()?;
    folder.rename(&unfinished, FILE)
}

fn folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(description: &str) -> Machine {
        Machine { name: MEASURED.into(), description: description.into(), ..Machine::preset("zen4").unwrap() }
    }

    #[test]
    fn what_is_kept_is_read_and_replaced_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("machine");
        assert_eq!(read(&path).unwrap(), None);
        let folder = PrivateFolder::make(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
        for description in ["first", "second"] {
            let machine = described(description);
            write(&folder, &machine).unwrap();
            assert_eq!(read(&path).unwrap(), Some(machine));
        }
        assert_eq!(folder.files().unwrap().len(), 1, "nothing is left beside it");
        std::fs::write(path.join(FILE), "name = 7\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("measured.toml:1: name: 7; expected a string"), "{error}");
    }

    #[test]
    fn another_machines_description_is_refused() {
        let host = Machine { description: "Some Processor".into(), ..Machine::host() };
        let path = Path::new("measured.toml");
        let own = described("Some Processor, measured on 2026-11-23");
        assert_eq!(of_this_host(own.clone(), &host, path).unwrap(), own);
        for other in ["Some Processor 2, measured on 2026-11-23", "Some", ""] {
            let error = of_this_host(described(other), &host, path).unwrap_err().to_string();
            assert!(error.contains("another machine") && error.contains("doctor --measure"), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = machine(OsStr::new("vax")).unwrap_err().to_string();
        assert!(error.starts_with("no machine \"vax\": expected host, measured, a TOML file, or one of "));
        assert_eq!(machine(OsStr::new("zen4")).unwrap().name, "zen4");
    }
}
