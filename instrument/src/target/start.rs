//! Starts a program, which stops in its exec, and explains a failed start.

use super::ptrace::{self, Birth, Spawn};
use crate::error::{Error, ErrorKind};
use crate::outcome::{Aslr, Command, Options};
use crate::virtual_machine::Repeats;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The limit of the stack in runs that repeat: the system's usual one.
const STACK_BYTES: u64 = 8 << 20;

/// Starts the program at `path`, which stops in its exec.
pub(crate) fn spawn(path: &Path, command: &Command, options: &Options) -> Result<Spawn, Error> {
    let text = |string: &OsStr| {
        let nul = "arguments cannot contain a NUL byte";
        CString::new(string.as_bytes()).map_err(|_| Error::new(ErrorKind::NotExecutable, nul))
    };
    let mut argv = vec![text(&command.program)?];
    for argument in &command.arguments {
        argv.push(text(argument)?);
    }
    let repeats = options.machine.repeats == Repeats::Exactly;
    let environment = options.machine.environment().map(|variables| environment(&variables));
    let stack_bytes = repeats.then_some(STACK_BYTES);
    let birth = Birth { randomise: options.aslr == Aslr::On, environment, stack_bytes };
    ptrace::spawn(&text(path.as_os_str())?, &argv, &birth)
}

/// This process's environment, in which `variables` have other values.
fn environment(variables: &[(&str, String)]) -> Vec<CString> {
    let is_other = |name: &OsStr| variables.iter().all(|(changed, _)| name != *changed);
    let joined =
        |name: &OsStr, value: &OsStr| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok();
    let kept = std::env::vars_os().filter(|(name, _)| is_other(name));
    let kept = kept.filter_map(|(name, value)| joined(&name, &value));
    let new = variables.iter().filter_map(|(name, value)| joined(name.as_ref(), value.as_ref()));
    new.chain(kept).collect()
}

/// The error for a program that the system refuses to execute.
pub(crate) fn exec_failed(path: &Path, error: i32) -> Error {
    let why = std::io::Error::from_raw_os_error(error);
    let kind = if error == libc::ENOENT { ErrorKind::NotFound } else { ErrorKind::NotExecutable };
    Error::program(kind, path, &format!("the system refuses to execute it ({why})"))
}
