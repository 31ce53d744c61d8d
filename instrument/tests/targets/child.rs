//! Runs a program under one of the machines in a process of its own, so that its output can be
//! caught, a hang ended and the environment be the same for all.
//!
//! The test program starts itself again as `agree --child twin|engine PROGRAM REPORT`; the child
//! inherits a fixed environment and hands it on, and leaves what it saw in a file.

use super::Ends;
use event::Access;
use lightfoot_instrument::reference::Reference;
use lightfoot_instrument::Exit;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The whole environment of every run. Its size moves the stack and the work that start-up code
/// does.
const ENVIRONMENT: [(&str, &str); 4] =
    [("HOME", "/"), ("LC_ALL", "C"), ("PATH", "/usr/bin:/bin"), ("TZ", "UTC")];

/// No target runs this long, even single-stepped on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);

/// A processor that this process may use, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor(u32);

/// All of them.
pub(crate) fn processors() -> Vec<Processor> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let list =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a line of status");
    let number = |text: &str| text.trim().parse::<u32>().expect("a processor's number");
    list.split(',')
        .flat_map(|range| match range.split_once('-') {
            Some((first, last)) => number(first)..=number(last),
            None => number(range)..=number(range),
        })
        .map(Processor)
        .collect()
}

/// What a program did, seen from outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// What it printed.
    pub(crate) stdout: String,
    /// What it, or the machine, complained of.
    pub(crate) stderr: String,
    /// How it ended.
    pub(crate) ends: Ends,
}

/// What a machine says that the program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Ending.
    pub(crate) ends: Ends,
    /// Instructions retired.
    pub(crate) instructions: u64,
    /// Iterations of repeated instructions beyond the first.
    pub(crate) repeats: u64,
    /// Dynamic basic blocks (0 where a machine does not count them).
    pub(crate) blocks: u64,
    /// Instructions whose references the machine knows incompletely.
    pub(crate) unmodelled: u64,
    /// The sequence of data references.
    pub(crate) references: Vec<Reference>,
    /// The sequence of 64-byte instruction lines, without immediate repetitions.
    pub(crate) lines: Vec<u64>,
    /// For each reference the address of the instruction that made it, where the machine says so.
    pub(crate) owners: Vec<u64>,
}

/// Runs `program` on the bare machine.
pub(crate) fn native(program: &Path) -> Result<Seen, String> {
    watch(Command::new(program), program)
}

/// Whether a program lies at the same addresses in every run; said where the system refuses that,
/// as container filters do.
pub(crate) fn fixed_addresses() -> bool {
    let mut setarch = Command::new("setarch");
    let refused = setarch.args(["x86_64", "-R", "true"]).status().is_ok_and(|ran| !ran.success());
    if refused {
        eprintln!("skipped: this system refuses personality(ADDR_NO_RANDOMIZE)");
    }
    !refused
}

/// Runs `program` under `machine` in a child process. Both stay on one processor: a step then costs
/// half as much.
pub(crate) fn under(machine: &str, program: &Path, processor: Processor) -> Result<(Seen, Report), String> {
    let report = program.with_extension(format!("{machine}.report"));
    let mut command = Command::new("taskset");
    command
        .args(["-c", &processor.0.to_string()])
        .arg(std::env::current_exe().expect("the test program has a path"));
    command.args(["--child", machine]).arg(program).arg(&report);
    let seen = watch(command, &report)?;
    let Ok(bytes) = std::fs::read(&report) else {
        let why: Vec<&str> = seen.stderr.lines().filter(|line| !line.is_empty()).take(2).collect();
        return Err(format!("no report, {:?}: {}", seen.ends, why.join(" ")));
    };
    std::fs::remove_file(&report).map_err(|error| error.to_string())?;
    Ok((seen, Report::parse(&bytes)))
}

fn watch(mut command: Command, beside: &Path) -> Result<Seen, String> {
    let (out, err) = (beside.with_extension("stdout"), beside.with_extension("stderr"));
    let create = |path: &Path| File::create(path).expect("the directory for test files is writable");
    let mut child = command
        // What dies may leave a core where it was.
        .current_dir(beside.parent().expect("a file in a folder"))
        .env_clear()
        .envs(ENVIRONMENT)
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            return Err(format!("{command:?} did not end"));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let read =
        |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    Ok(Seen { stdout: read(&out), stderr: read(&err), ends: ends(status) })
}

fn ends(status: ExitStatus) -> Ends {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ends::Code(code),
        (None, Some(signal)) => Ends::Signal(signal),
        (None, None) => unreachable!("a reaped child has exited or was killed"),
    }
}

impl From<Exit> for Ends {
    fn from(exit: Exit) -> Ends {
        match exit {
            Exit::Code(code) => Ends::Code(code),
            Exit::Signal(signal) => Ends::Signal(signal),
            Exit::RunsOn => panic!("a target ends"),
        }
    }
}

impl Report {
    /// Writes the report as words of eight bytes.
    pub(crate) fn write(&self, path: &Path) {
        let (kind, value) = match self.ends {
            Ends::Code(code) => (0, code),
            Ends::Signal(signal) => (1, signal),
        };
        let head = [kind, value as u64, self.instructions, self.repeats, self.blocks, self.unmodelled];
        let sizes = [self.lines.len() as u64, self.owners.len() as u64];
        let body =
            self.references.iter().flat_map(|r| [r.address, u64::from(r.size_bytes) << 8 | r.access as u64]);
        let tables = self.lines.iter().chain(&self.owners).copied();
        let words = head.into_iter().chain(sizes).chain(tables).chain(body);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        File::create(path).and_then(|mut file| file.write_all(&bytes)).expect("the report can be written");
    }

    fn parse(bytes: &[u8]) -> Report {
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("eight bytes"))).collect();
        let reference = |pair: &[u64]| Reference {
            address: pair[0],
            size_bytes: (pair[1] >> 8) as u32,
            access: [Access::Load, Access::Store, Access::Prefetch][(pair[1] & 0xff) as usize],
        };
        let (lines, rest) = words[8..].split_at(words[6] as usize);
        let (owners, references) = rest.split_at(words[7] as usize);
        Report {
            ends: if words[0] == 0 { Ends::Code(words[1] as i32) } else { Ends::Signal(words[1] as i32) },
            instructions: words[2],
            repeats: words[3],
            blocks: words[4],
            unmodelled: words[5],
            references: references.chunks_exact(2).map(reference).collect(),
            lines: lines.to_vec(),
            owners: owners.to_vec(),
        }
    }
}
