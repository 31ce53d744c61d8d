//! `lightfoot instrument PROGRAM -o FILE`: writes one file that runs the program under
//! instrumentation, like ATOM's output.
//!
//! The file is this executable with an additional section, which `strip` keeps; it holds the
//! program and the options. At its start the executable finds the section and acts like the command
//! line. The program runs from its original place if that still holds the same bytes, else from a
//! copy in a temporary folder, under its own name.

use super::carrier;
use crate::cli::{Cli, Command, Instrument};
use ::instrument::tools;
use anyhow::{Context, Result};
use clap::Parser;
use present::exit::{refused, Failure, CANNOT_RUN};
use present::output::{print, replace_with};
use present::temporary::Temporary;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The section ends with these bytes and three numbers of 8 bytes: the program's length, the
/// header's length, and a checksum of both.
const MAGIC: &[u8; 16] = b"lightfoot-carry1";
const TRAILER_BYTES: usize = 40;
const THIS: &str = "/proc/self/exe";
/// A placeholder for the program while options are checked.
const PLACEHOLDER: &str = "program";

/// The data behind the program in the section.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The command and its options, up to the program.
    words: Vec<String>,
    /// The program's original path; paths need not be UTF-8.
    path: Vec<u8>,
}

pub(super) fn run(options: &Instrument) -> Result<u8> {
    let path = found(&options.program)?;
    let program =
        std::fs::read(&path).map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
    // The fifth byte of an ELF file is its class: 2 for 64 bits.
    if !program.starts_with(b"\x7fELF\x02") {
        return Err(refused(format!(
            "{} is no 64-bit ELF program: scripts run under their interpreter, instrument that",
            path.display()
        )));
    }
    let permissions = permissions(&path)?;
    // Options are checked now, so that the written file cannot fail because of them later.
    let words = words(options)?;
    let header = Header { words, path: path.into_os_string().into_vec() };
    let file = composed(&std::fs::read(THIS).context("cannot read this executable")?, &program, &header)?;
    let out = &options.output;
    // Writing replaces the path by a new file. A device such as /dev/null must not be replaced.
    if out.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(refused(format!(
            "{} is no file: name one that the program can be written to",
            out.display()
        )));
    }
    replace_with(out, &file, &permissions).with_context(|| format!("cannot write {}", out.display()))?;
    print(&format!(
        "{} runs {} under {}\n",
        out.display(),
        options.program.display(),
        header.words.join(" ")
    ))?;
    Ok(0)
}

/// The permissions of the instrumented program: those of the program, which it contains. It never
/// runs as another user, and never with more rights than its caller has.
fn permissions(program: &Path) -> Result<Permissions> {
    let about = program.metadata().with_context(|| format!("cannot read {}", program.display()))?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o111 == 0 {
        return Err(refused(format!(
            "{0} is not executable: chmod +x {0}, or name another program",
            program.display()
        )));
    }
    Ok(Permissions::from_mode(mode))
}

/// The program's file, as a shell would find it.
fn found(program: &OsStr) -> Result<PathBuf> {
    let given = Path::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates: Vec<PathBuf> = match program.as_bytes().contains(&b'/') {
        true => vec![given.to_owned()],
        false => std::env::split_paths(&path).map(|folder| folder.join(given)).collect(),
    };
    let file = candidates.into_iter().find(|path| path.is_file());
    file.and_then(|path| path.canonicalize().ok())
        .ok_or_else(|| refused(format!("there is no program {}", given.display())))
}

/// The command and its options, checked as if a program followed.
fn words(options: &Instrument) -> Result<Vec<String>> {
    let tool = options.tool.as_str();
    let mut words = match tool {
        "count" | "cache" => vec![tool.to_owned()],
        _ if tools::find(tool).is_some() => vec!["tool".to_owned()],
        _ => {
            let names: Vec<&str> = tools::TOOLS.iter().map(|tool| tool.name).collect();
            return Err(refused(format!(
                "there is no tool {tool}: say count, cache, or one of {}",
                names.join(", ")
            )));
        }
    };
    words.extend(options.with.iter().cloned());
    if words[0] == "tool" {
        words.push(tool.to_owned());
    }
    let line = ["lightfoot".to_owned()]
        .into_iter()
        .chain(words.clone())
        .chain(["--".to_owned(), PLACEHOLDER.to_owned()]);
    let cli = Cli::try_parse_from(line).map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
    // A word that is not an option of the tool would be taken for the program.
    match program(&cli.command).first() {
        Some(first) if first != PLACEHOLDER => {
            Err(refused(format!("{tool} has no option {}: see its --help", first.display())))
        }
        _ => Ok(words),
    }
}

/// The program and its arguments in a command that runs one.
fn program(command: &Command) -> &[OsString] {
    match command {
        Command::Count(count) => &count.run.program,
        Command::Cache(cache) => &cache.run.program,
        Command::Tool(tool) => &tool.program,
        _ => &[],
    }
}

fn composed(this: &[u8], program: &[u8], header: &Header) -> Result<Vec<u8>> {
    let header = serde_json::to_vec(header)?;
    let mut carried = [program, &header].concat();
    let sum = checksum(&carried);
    carried.extend_from_slice(MAGIC);
    for number in [program.len() as u64, header.len() as u64, sum] {
        carried.extend_from_slice(&number.to_le_bytes());
    }
    carrier::with_section(this, &carried).context("this executable has no section table: build it anew")
}

/// FNV-1a: enough to tell a damaged file from a whole one.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A program that this executable carries.
pub struct Carried {
    header: Header,
    program: Vec<u8>,
}

/// The program that this executable carries, if any; executables without one cost three short
/// reads.
///
/// # Errors
/// When it is damaged.
pub fn carried() -> Result<Option<Carried>> {
    let Ok(file) = File::open(THIS) else { return Ok(None) };
    read_carried(&file)
}

fn read_carried(file: &File) -> Result<Option<Carried>> {
    let Some(section) = carrier::section(file) else { return Ok(None) };
    let mut trailer = [0; TRAILER_BYTES];
    let end = section.end.saturating_sub(TRAILER_BYTES as u64);
    let read = file.read_exact_at(&mut trailer, end).is_ok();
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| trailer[at + byte]));
    let (program_bytes, header_bytes, sum) = (number(16), number(24), number(32));
    let damaged = || Failure {
        status: CANNOT_RUN,
        sentence: "this instrumented program is damaged: make it again".into(),
    };
    let whole =
        |bytes: &u64| read && trailer.starts_with(MAGIC) && section.start.checked_add(*bytes) == Some(end);
    let carried_bytes = program_bytes.checked_add(header_bytes).filter(whole).ok_or_else(damaged)?;
    let mut program = vec![0; usize::try_from(carried_bytes)?];
    file.read_exact_at(&mut program, end - carried_bytes).map_err(|_| damaged())?;
    if checksum(&program) != sum {
        return Err(damaged().into());
    }
    let header = program.split_off(usize::try_from(program_bytes)?);
    let header = serde_json::from_slice(&header).map_err(|_| damaged())?;
    Ok(Some(Carried { header, program }))
}

impl Carried {
    /// The command line that runs the program with `arguments`. If the program is no longer at its
    /// original place, also a temporary copy, which must exist as long as the program runs.
    ///
    /// # Errors
    /// When the program can neither be found nor written.
    pub(super) fn command_line(&self, arguments: &[OsString]) -> Result<(Cli, Option<Temporary>)> {
        let path = PathBuf::from(OsString::from_vec(self.header.path.clone()));
        let own_place = std::fs::read(&path).is_ok_and(|bytes| bytes == self.program);
        let (path, copy) = if own_place { (path, None) } else { self.unpack(&path)? };
        let mut all: Vec<OsString> = vec!["lightfoot".into()];
        all.extend(self.header.words.iter().map(OsString::from));
        all.extend([OsString::from("--"), path.into_os_string()]);
        all.extend(arguments.iter().cloned());
        Ok((Cli::try_parse_from(&all)?, copy))
    }

    fn unpack(&self, path: &Path) -> Result<(PathBuf, Option<Temporary>)> {
        let temporary = Temporary::new("carried")?;
        let copy = temporary.path().join(path.file_name().unwrap_or("program".as_ref()));
        std::fs::write(&copy, &self.program)
            .and_then(|()| std::fs::set_permissions(&copy, Permissions::from_mode(0o700)))
            .with_context(|| format!("cannot write {}", copy.display()))?;
        Ok((copy, Some(temporary)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::carrier::tests::smallest;
    use super::*;

    fn file(bytes: &[u8]) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        File::open(path).unwrap()
    }

    #[test]
    fn what_is_carried_comes_back_and_damage_is_seen() {
        let header = Header { words: vec!["count".into()], path: b"/bin/\xff".to_vec() };
        let mut bytes = composed(&smallest(), b"the program", &header).unwrap();
        let carried = read_carried(&file(&bytes)).unwrap().unwrap();
        assert_eq!(
            (carried.program.as_slice(), carried.header.path.as_slice()),
            (&b"the program"[..], &b"/bin/\xff"[..])
        );
        let at = bytes.windows(11).position(|window| window == b"the program").unwrap();
        bytes[at + 4] ^= 1;
        assert!(read_carried(&file(&bytes)).is_err());
        assert!(read_carried(&file(&smallest())).unwrap().is_none());
        assert!(read_carried(&file(&[b'x'; 100])).unwrap().is_none());
    }
}
