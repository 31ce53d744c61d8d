//! Starts a program, which stops in its exec, and explains a failed start.

use super::ptrace::{self, Spawn};
use crate::error::{Error, ErrorKind};
use crate::outcome::{Aslr, Command, Options};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    ptrace::spawn(&text(path.as_os_str())?, &argv, options.aslr == Aslr::On)
}

/// The error for a program that the system refuses to execute.
pub(crate) fn exec_failed(path: &Path, error: i32) -> Error {
    let why = std::io::Error::from_raw_os_error(error);
    let kind = if error == libc::ENOENT { ErrorKind::NotFound } else { ErrorKind::NotExecutable };
    Error::program(kind, path, &format!("the system refuses to execute it ({why})"))
}
