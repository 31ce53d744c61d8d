//! Looks at a program before it is started, so that a refusal is one sentence instead of a signal later.
//!
//! Follows `execvp`: a name without a slash is searched in `PATH`. Scripts are followed to their interpreter only as far as
//! their `#!` line exists: the kernel does the rest, and the exec is instrumented like any other.
//! Leaves out: capabilities on files (the kernel clears them under ptrace) and `binfmt_misc`.

use crate::error::{Error, ErrorKind};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
    let meta = std::fs::metadata(&path).map_err(|e| not_found(program, &e.to_string()))?;
    if meta.is_dir() {
        return Err(Error::program(ErrorKind::NotExecutable, &path, "it is a directory"));
    }
    if !meta.is_file() {
        return Err(Error::program(ErrorKind::NotExecutable, &path, "it is not a regular file"));
    }
    let mode = meta.permissions().mode();
    if mode & 0o111 == 0 {
        let why = "it is not executable; 'chmod +x' makes it so";
        return Err(Error::program(ErrorKind::NotExecutable, &path, why));
    }
    let user = mode & 0o4000 != 0 && meta.uid() != effective_user();
    if user || mode & 0o2010 == 0o2010 {
        let why =
            "it is setuid or setgid, and the kernel drops those rights under tracing; run it as its owner";
        return Err(Error::program(ErrorKind::SetUser, &path, why));
    }
    check_header(&path)?;
    Ok(path)
}

fn effective_user() -> u32 {
    std::fs::metadata("/proc/self").map(|m| m.uid()).unwrap_or(0)
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
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
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
            Ok(m) if m.is_file() && m.permissions().mode() & 0o111 != 0 => return Ok(candidate),
            Ok(m) if m.is_file() => refused = Some(candidate),
            _ => {}
        }
    }
    refused.ok_or_else(|| not_found(program, "no such program in PATH"))
}

pub(crate) fn check_header(path: &Path) -> Result<(), Error> {
    let path = path.to_path_buf();
    let mut file = File::open(&path)
        .map_err(|e| Error::program(ErrorKind::NotExecutable, &path, &format!("it cannot be read ({e})")))?;
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
        (_, _, m) => return wrong(&format!("it is built for {}, not x86-64", machine_name(m))),
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
