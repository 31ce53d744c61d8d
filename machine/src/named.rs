//! Finds machines by name, and reads and writes descriptions.

use crate::preset::PRESETS;
use crate::{read, Error, Machine};
use std::ffi::OsStr;
use std::path::Path;

impl Machine {
    /// The machine that option `--machine` names: `host`, a preset, or the path of a TOML file.
    ///
    /// # Errors
    /// If `name` is none of these, or the file does not describe a machine.
    pub fn named(name: &OsStr) -> Result<Machine, Error> {
        if name == "host" {
            return Ok(Machine::host());
        }
        let path = Path::new(name);
        match name.to_str().map(Machine::preset) {
            Some(Ok(machine)) => Ok(machine),
            _ if path.exists() || path.extension().is_some_and(|e| e == "toml") => Machine::from_file(path),
            _ => Err(unknown(&name.to_string_lossy())),
        }
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    /// When it cannot be read or describes no machine.
    pub fn from_file(path: &Path) -> Result<Machine, Error> {
        let unreadable = |e: std::io::Error| Error::Unreadable { path: path.into(), reason: e.to_string() };
        Machine::from_toml(&std::fs::read_to_string(path).map_err(unreadable)?, path)
    }

    /// Reads a description; `path` is for error messages only. The files in `machine/machines` are
    /// commented examples.
    ///
    /// # Errors
    /// With file, line and field, and what was expected there.
    pub fn from_toml(text: &str, path: &Path) -> Result<Machine, Error> {
        read::machine(text, path)
    }

    /// The description as TOML: what [`Machine::from_toml`] reads back as an equal value.
    ///
    /// # Panics
    /// When a number exceeds TOML's signed 64 bits, which no checked machine has.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a checked machine has a TOML form")
    }

    /// A preset by name.
    ///
    /// # Errors
    /// If there is no such preset; the message lists all presets.
    pub fn preset(name: &str) -> Result<Machine, Error> {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        preset.map(|preset| preset.machine()).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Error {
    Error::Unknown { name: name.into(), presets: PRESETS.iter().map(|preset| preset.name).collect() }
}
