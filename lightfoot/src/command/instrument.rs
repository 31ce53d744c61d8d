//! `lightfoot instrument PROGRAM -o FILE`: one file that runs the program instrumented by itself, ATOM's product.
//!
//! The file is this executable with the program and the options behind it; at its start it finds them and does what the command line would have done. The
//! program runs from its own place where that still holds the same bytes, else from a copy in a temporary folder, under its own name. **Leaves
//! out** the program's shared libraries: on another machine those are that machine's.

use crate::cli::{Cli, Command, Instrument};
use crate::exit::{Failure, CANNOT_RUN, USAGE};
use crate::report::output::{print, replace};
use ::instrument::tools;
use anyhow::{Context, Result};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The last bytes of such a file: this, and three numbers of 8 bytes: the program's length, the header's, and a checksum of both.
const MAGIC: &[u8; 16] = b"lightfoot-carry1";
const TRAILER_BYTES: usize = 40;
const THIS: &str = "/proc/self/exe";
/// Stands for the program where options are checked.
const PLACEHOLDER: &str = "program";

/// What stands behind the program.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The command and its options, up to the program.
    words: Vec<String>,
    /// Where the program lay; paths need not be UTF-8.
    path: Vec<u8>,
}

pub(super) fn run(options: &Instrument) -> Result<u8> {
    let path = found(&options.program)?;
    let program =
        std::fs::read(&path).map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?;
    if !program.starts_with(b"\x7fELF\x02") {
        return Err(refused(format!(
            "{} is no 64-bit ELF program: scripts run under their interpreter, instrument that",
            path.display()
        )));
    }
    let words = words(options)?;
    let header = Header { words, path: path.into_os_string().into_vec() };
    let file = composed(&std::fs::read(THIS).context("cannot read this executable")?, &program, &header)?;
    let out = &options.output;
    if out.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(refused(format!(
            "{} is no file: name one that the program can be written to",
            out.display()
        )));
    }
    replace(out, &file).with_context(|| format!("cannot write {}", out.display()))?;
    std::fs::set_permissions(out, Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", out.display()))?;
    print(&format!(
        "{} runs {} under {}\n",
        out.display(),
        options.program.display(),
        header.words.join(" ")
    ))?;
    Ok(0)
}

fn refused(sentence: String) -> anyhow::Error {
    Failure { status: USAGE, sentence }.into()
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
    let cli = Cli::try_parse_from(line).map_err(|said| refused(said.to_string().trim_end().to_owned()))?;
    // What is no option of the tool would be taken for the program.
    match program(&cli.command).first() {
        Some(first) if first != PLACEHOLDER => {
            Err(refused(format!("{tool} has no option {}: see its --help", first.display())))
        }
        _ => Ok(words),
    }
}

/// The program of a command line that runs one.
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
    let mut file = [this, program, &header].concat();
    let sum = checksum(&file[this.len()..]);
    file.extend_from_slice(MAGIC);
    for number in [program.len() as u64, header.len() as u64, sum] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    Ok(file)
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

/// What this executable carries, if it does: one read of 40 bytes for all that do not.
///
/// # Errors
/// When it is damaged.
pub fn carried() -> Result<Option<Carried>> {
    let Ok(file) = File::open(THIS) else { return Ok(None) };
    read_carried(&file)
}

fn read_carried(file: &File) -> Result<Option<Carried>> {
    let length = file.metadata().map_or(0, |about| about.len());
    let mut trailer = [0; TRAILER_BYTES];
    let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    if file.read_exact_at(&mut trailer, end).is_err() || !trailer.starts_with(MAGIC) {
        return Ok(None);
    }
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| trailer[at + byte]));
    let (program_bytes, header_bytes, sum) = (number(16), number(24), number(32));
    let damaged = || Failure {
        status: CANNOT_RUN,
        sentence: "this instrumented program is damaged: make it again".into(),
    };
    let carried_bytes =
        program_bytes.checked_add(header_bytes).filter(|bytes| *bytes <= end).ok_or_else(damaged)?;
    let mut program = vec![0; usize::try_from(carried_bytes)?];
    file.read_exact_at(&mut program, end - carried_bytes).map_err(|_| damaged())?;
    if checksum(&program) != sum {
        return Err(damaged().into());
    }
    let header = program.split_off(usize::try_from(program_bytes)?);
    let header = serde_json::from_slice(&header).map_err(|_| damaged())?;
    Ok(Some(Carried { header, program }))
}

/// A folder that goes when the run is over.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Carried {
    /// Does what the command line would do with the program and `arguments`.
    ///
    /// # Errors
    /// As [`super::run`]; when the program can neither be found nor written.
    pub fn run(self, arguments: &[OsString]) -> Result<u8> {
        let path = PathBuf::from(OsString::from_vec(self.header.path.clone()));
        let own_place = std::fs::read(&path).is_ok_and(|bytes| bytes == self.program);
        let (path, _temporary) = if own_place { (path, None) } else { self.unpack(&path)? };
        let mut all: Vec<OsString> = vec!["lightfoot".into()];
        all.extend(self.header.words.iter().map(OsString::from));
        all.extend([OsString::from("--"), path.into_os_string()]);
        all.extend(arguments.iter().cloned());
        let cli = Cli::try_parse_from(&all)?;
        super::run(&cli.command)
    }

    fn unpack(&self, path: &Path) -> Result<(PathBuf, Option<Temporary>)> {
        let folder = std::env::temp_dir().join(format!("lightfoot-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| {
            format!(
                "cannot make {} to run the program from: set TMPDIR to a folder that can be written to",
                folder.display()
            )
        })?;
        let temporary = Temporary(folder);
        let copy = temporary.0.join(path.file_name().unwrap_or("program".as_ref()));
        std::fs::write(&copy, &self.program)
            .and_then(|()| std::fs::set_permissions(&copy, Permissions::from_mode(0o700)))
            .with_context(|| format!("cannot write {}", copy.display()))?;
        Ok((copy, Some(temporary)))
    }
}

#[cfg(test)]
mod tests {
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
        let mut bytes = composed(b"this executable", b"the program", &header).unwrap();
        let carried = read_carried(&file(&bytes)).unwrap().unwrap();
        assert_eq!(
            (carried.program.as_slice(), carried.header.path.as_slice()),
            (&b"the program"[..], &b"/bin/\xff"[..])
        );
        bytes[20] ^= 1;
        assert!(read_carried(&file(&bytes)).is_err());
        assert!(read_carried(&file(b"this executable")).unwrap().is_none());
        assert!(read_carried(&file(&[b'x'; 100])).unwrap().is_none());
    }
}
