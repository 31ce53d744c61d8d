//! Checks a program before it is started, so that a refusal is one sentence instead of a signal
//! later.
//!
//! The checks follow `execvp`: a name without a slash is searched in `PATH`. For a script they
//! continue with the program that runs it, because that program's rights and format matter. For an
//! ELF program they check that its interpreter exists. **Leaves out** `binfmt_misc`.

use crate::error::{Error, ErrorKind};
use crate::target::interpreter;
use crate::target::rights;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most scripts in a row that name each other as interpreters; the kernel has this limit.
const INTERPRETERS_MAX: usize = 5;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const EM_386: u16 = 3;
const EM_X86_64: u16 = 62;

/// Finds `program` as `execvp` would and checks that the engine can run it.
///
/// # Errors
/// When there is no such program, or it cannot be run.
pub fn locate(program: &OsStr) -> Result<PathBuf, Error> {
    let path = find(program)?;
    let about = std::fs::metadata(&path).map_err(|error| not_found(program, &error.to_string()))?;
    check_file(&path, &about, &path)?;
    let mut last = (path.clone(), about);
    for _ in 0..INTERPRETERS_MAX {
        check_header(&last.0)?;
        match runs(&path, &last.0)? {
            Some(next) => last = next,
            None => break,
        }
    }
    match rights::given(&last.0, &last.1) {
        Some(given) => Err(Error::program(ErrorKind::SetUser, &last.0, given.refusal())),
        None => Ok(path),
    }
}

/// Refuses a file that the kernel would not execute; `program` is the name that the user gave.
fn check_file(path: &Path, about: &Metadata, program: &Path) -> Result<(), Error> {
    let refuse = |why: &str| {
        let why = match path == program {
            true => why.to_string(),
            false => format!("its interpreter '{}' cannot be executed: {why}", shown(path)),
        };
        Err(Error::program(ErrorKind::NotExecutable, program, &why))
    };
    if about.is_dir() {
        return refuse("it is a directory");
    }
    if !about.is_file() {
        return refuse("it is not a regular file");
    }
    if about.permissions().mode() & 0o111 == 0 {
        return refuse("it is not executable; 'chmod +x' makes it so");
    }
    Ok(())
}

/// The program that runs `file`, if `file` is a script. An ELF program's interpreter must only
/// exist. Errors name `program`, which the user has named.
fn runs(program: &Path, file: &Path) -> Result<Option<(PathBuf, Metadata)>, Error> {
    let Ok(opened) = File::open(file) else { return Ok(None) };
    let script = interpreter::of_script(&opened);
    let Some(interpreter) = script.clone().or_else(|| interpreter::of_elf(&opened)) else { return Ok(None) };
    let about = interpreter.metadata().map_err(|error| {
        let named = shown(&interpreter);
        let how = if script.is_some() { "its first line names" } else { "it was linked for" };
        // Scripts from other systems may end each line with a carriage return and a newline.
        let remedy = match named.ends_with("\\r") {
            true => "; remove the carriage return at the end of that line",
            false => "",
        };
        let whose = match file == program {
            true => String::new(),
            false => format!("'{}', which runs it, cannot run: ", shown(file)),
        };
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "which does not exist".to_string(),
            _ => format!("which cannot be used ({error})"),
        };
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::NotExecutable,
        };
        Error::program(kind, program, &format!("{whose}{how} the interpreter '{named}', {why}{remedy}"))
    })?;
    if script.is_none() {
        return Ok(None);
    }
    check_file(&interpreter, &about, program)?;
    Ok(Some((interpreter, about)))
}

/// A name with its control characters escaped.
fn shown(path: &Path) -> String {
    let visible = |character: char| {
        if character.is_control() {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    };
    path.to_string_lossy().chars().map(visible).collect()
}

fn not_found(program: &OsStr, why: &str) -> Error {
    let name = program.to_string_lossy();
    Error::new(ErrorKind::NotFound, format!("cannot run '{name}': {why}"))
}

fn find(program: &OsStr) -> Result<PathBuf, Error> {
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match path.metadata() {
            Ok(_) => Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Error::program(ErrorKind::NotExecutable, &path, "permission denied"))
            }
            Err(_) => Err(not_found(program, "no such file")),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut refused = None;
    for dir in std::env::split_paths(&path) {
        let candidate = dir.join(program);
        match candidate.metadata() {
            Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate)
            }
            Ok(metadata) if metadata.is_file() => refused = Some(candidate),
            _ => {}
        }
    }
    refused.ok_or_else(|| not_found(program, "no such program in PATH"))
}

/// Refuses a file that is neither a script nor a 64-bit x86-64 ELF program.
pub(crate) fn check_header(path: &Path) -> Result<(), Error> {
    let path = path.to_path_buf();
    let mut file = File::open(&path).map_err(|error| {
        Error::program(ErrorKind::NotExecutable, &path, &format!("it cannot be read ({error})"))
    })?;
    let mut head = Vec::with_capacity(64);
    let _ = file.by_ref().take(64).read_to_end(&mut head);
    if head.starts_with(b"#!") {
        return Ok(());
    }
    if !head.starts_with(b"\x7fELF") || head.len() < 20 {
        let why = "it is neither an ELF executable nor a script with a '#!' line";
        return Err(Error::program(ErrorKind::NotElf, &path, why));
    }
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (kind, machine) = (half(16), half(18));
    let wrong = |why: &str| Err(Error::program(ErrorKind::WrongArchitecture, &path, why));
    match (head[4], head[5], machine) {
        (2, 1, EM_X86_64) => {}
        (_, 1, EM_386) => return wrong("it is a 32-bit x86 program; lightfoot runs 64-bit ones"),
        (1, 1, EM_X86_64) => return wrong("it is an x32 program; lightfoot runs 64-bit ones"),
        (_, _, machine) => return wrong(&format!("it is built for {}, not x86-64", machine_name(machine))),
    }
    if kind != ET_EXEC && kind != ET_DYN {
        let why = "it is an object file or a core dump, not an executable";
        return Err(Error::program(ErrorKind::NotElf, &path, why));
    }
    Ok(())
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        8 => "MIPS",
        20 => "32-bit PowerPC",
        21 => "PowerPC",
        22 => "S/390",
        40 => "32-bit Arm",
        183 => "Arm (AArch64)",
        243 => "RISC-V",
        258 => "LoongArch",
        other => return format!("another architecture (ELF machine {other})"),
    };
    name.to_string()
}
