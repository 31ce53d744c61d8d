//! What the command tests stand on: a temporary folder, files made to order, and a run that can be
//! asked about.

#![allow(dead_code, reason = "each test crate uses its own part")]

use rustix::process::{
    getrlimit, kill_process, kill_process_group, setrlimit, Pid, Resource, Rlimit, Signal,
};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No wait of a test's is longer, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lightfoot");

/// By which whoever runs the tests says what output should look like, or configures: a build
/// machine (`CI` means "colour, whatever `TERM` says"), a terminal, a user.
const WISHES: [&str; 8] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LIGHTFOOT_GREP_CONFIG_PATH",
    "NO_COLOR",
    "RIPGREP_CONFIG_PATH",
    "SOURCE_DATE_EPOCH",
];

/// Takes the runner's wishes away from a command of the program under test.
pub(crate) fn unwished(command: &mut Command) -> &mut Command {
    WISHES.iter().for_each(|name| _ = command.env_remove(name));
    command
}

/// Gives the `git`s that a command runs no repository and no configuration but those that they
/// find: in a hook the variables name the one that is committed to.
pub(crate) fn git_by_itself(command: &mut Command) -> &mut Command {
    let variables = std::env::vars_os().map(|(name, _)| name);
    let of_git = variables.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_"));
    of_git.for_each(|name| _ = command.env_remove(name));
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

/// A command line of the program under test.
pub(crate) fn lightfoot() -> Lightfoot {
    let mut command = Command::new(BINARY);
    unwished(&mut command);
    Lightfoot(piped(command))
}

fn piped(mut command: Command) -> Command {
    leave_no_core();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) struct Lightfoot(Command);

impl Lightfoot {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// In a folder of the test, where programs leave files of relative names.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    pub(crate) fn run(mut self) -> Ran {
        let start = Instant::now();
        Ran::new(self.0.output().unwrap(), start)
    }

    pub(crate) fn run_with_input(mut self, input: &[u8]) -> Ran {
        let start = Instant::now();
        let mut child = self.0.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::new(child.wait_with_output().unwrap(), start)
    }

    /// The exit status where nobody reads standard error.
    pub(crate) fn run_with_closed_stderr(mut self) -> Option<i32> {
        let mut child = self.0.spawn().unwrap();
        drop(child.stderr.take());
        child.wait().unwrap().code()
    }

    /// Starts it in a process group of its own, as a shell does with a job, and waits for a first
    /// line of output.
    pub(crate) fn start_job(self) -> Job {
        let start = Instant::now();
        let mut command = interruptible(&self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        Job { child, stdout, first, start }
    }
}

/// This command with streams of its own and with interrupts as programs of a terminal have them:
/// tests that a script runs in the background inherit that they are ignored.
pub(crate) fn interruptible(command: &Command) -> Command {
    let mut job = Command::new("env");
    job.arg("--default-signal=INT,QUIT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => job.env(name, value),
            None => job.env_remove(name),
        };
    }
    job.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    job
}

/// A signal by its name. `kill` as a program is in a package that a small system lacks.
pub(crate) fn signal(name: &str) -> Signal {
    match name {
        "CONT" => Signal::CONT,
        "INT" => Signal::INT,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        "TSTP" => Signal::TSTP,
        _ => panic!("no test sends SIG{name}"),
    }
}

/// Programs die in tests, some of them in the folder of the sources.
fn leave_no_core() {
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit }).unwrap();
}

/// A run in progress.
pub(crate) struct Job {
    child: Child,
    stdout: BufReader<ChildStdout>,
    first: String,
    start: Instant,
}

impl Job {
    /// Sends a signal to the whole group, as a terminal does.
    pub(crate) fn signal(&self, name: &str) {
        kill_process_group(Pid::from_child(&self.child), signal(name)).unwrap();
    }

    /// Sends a signal to the measuring process alone.
    pub(crate) fn signal_to_us(&self, name: &str) {
        kill_process(Pid::from_child(&self.child), signal(name)).unwrap();
    }

    /// What the program wrote first; nothing where it did not run.
    pub(crate) fn first_line(&self) -> &str {
        &self.first
    }

    /// Waits until the measuring process is (or is not) stopped.
    pub(crate) fn wait_until_stopped(&self, stopped: bool) {
        let path = format!("/proc/{}/stat", self.child.id());
        let state = || std::fs::read_to_string(&path).unwrap().rsplit_once(") ").unwrap().1.chars().next();
        let late = Instant::now() + PATIENCE;
        while (state() == Some('T')) != stopped {
            assert!(Instant::now() < late, "still {:?}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end; the output is all of it, the first line too.
    pub(crate) fn finish(mut self) -> Ran {
        let mut stdout = self.first.into_bytes();
        stdout.extend(self.stdout.buffer());
        // Both pipes are read at once: a long report must not wait for the end of the output.
        self.child.stdout = Some(self.stdout.into_inner());
        let out = self.child.wait_with_output().unwrap();
        stdout.extend(&out.stdout);
        Ran::new(Output { stdout, ..out }, self.start)
    }
}

/// Whether a program lies at the same addresses in every run, so that its misses repeat; said where
/// the system refuses that, as container filters do.
pub(crate) fn repeatable() -> bool {
    let refused =
        Command::new("setarch").args(["x86_64", "-R", "true"]).status().is_ok_and(|ran| !ran.success());
    if refused {
        eprintln!(
            "skipped: this system refuses personality(ADDR_NO_RANDOMIZE), so that counts do not repeat"
        );
    }
    !refused
}

/// A finished run.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) seconds: f64,
}

impl Ran {
    fn new(out: Output, start: Instant) -> Ran {
        let status = out.status.code().unwrap_or_else(|| -out.status.signal().unwrap_or(0));
        Ran { status, stdout: out.stdout, stderr: out.stderr, seconds: start.elapsed().as_secs_f64() }
    }

    /// Standard error.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn ends_with(&self, status: i32) -> &Ran {
        assert_eq!(self.status, status, "{}", self.said());
        self
    }

    #[track_caller]
    pub(crate) fn fails_with(&self, status: i32) -> &Ran {
        assert!(self.stdout.is_empty(), "{}", String::from_utf8_lossy(&self.stdout));
        self.ends_with(status)
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Ran {
        assert!(self.said().contains(words), "no \"{words}\" in: {}", self.said());
        self
    }

    #[track_caller]
    pub(crate) fn in_one_line(&self) -> &Ran {
        let said = self.said();
        assert!(
            said.starts_with("lightfoot: ") && said.ends_with('\n') && said.lines().count() == 1,
            "{said}"
        );
        self
    }
}

/// A JSON document.
#[track_caller]
pub(crate) fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

/// A temporary folder.
pub(crate) struct Bench(tempfile::TempDir);

impl Bench {
    pub(crate) fn new() -> Bench {
        leave_no_core();
        Bench(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    /// A copy that would run as another user; only root can make one.
    pub(crate) fn setuid_copy(&self, program: &str) -> Option<PathBuf> {
        let path = self.file("other", &std::fs::read(program).unwrap(), 0o755);
        if std::os::unix::fs::chown(&path, Some(65534), None).is_err() {
            eprintln!("skipped: only root can make a program setuid to another user");
            return None;
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4755)).unwrap();
        std::fs::set_permissions(self.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Some(path)
    }
}

/// Compiles a C source of ours; `None`, and said, where there is no compiler.
pub(crate) fn compile(bench: &Bench, name: &str, options: &[&str], source: &str) -> Option<PathBuf> {
    build(bench.file("source.c", source.as_bytes(), 0o644), bench.join(name), options)
}

/// C functions that nothing calls: with more than 4,096 of them, a program's table of symbols is
/// kept.
pub(crate) fn idle_functions(count: usize) -> String {
    (0..count).map(|number| format!("int idle_{number}(void) {{ return {number}; }}\n")).collect()
}

/// Compiles a C source of ours as `program.c` of a folder of its own; `None`, and said, where there
/// is no compiler.
pub(crate) fn compile_in(bench: &Bench, folder: &str, options: &[&str], source: &str) -> Option<PathBuf> {
    let folder = bench.join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("program.c");
    std::fs::write(&file, source).unwrap();
    build(file, folder.join("program"), options)
}

fn build(file: PathBuf, program: PathBuf, options: &[&str]) -> Option<PathBuf> {
    let built = Command::new("cc")
        .args(["-O1", "-w", "-pthread"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .output();
    match built {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            panic!("{} does not compile: {}", program.display(), String::from_utf8_lossy(&output.stderr))
        }
        Err(_) => {
            eprintln!("skipped: there is no C compiler (cc) here to compile {}", program.display());
            None
        }
    }
}

/// Word size of a made-up program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Bits32,
    Bits64,
}

/// The header of an executable for `machine`, and nothing after it.
pub(crate) fn elf_header(class: Class, machine: u16) -> Vec<u8> {
    let (ident, size) = if class == Class::Bits32 { (1, 52) } else { (2, 64) };
    let mut header = vec![0x7f, b'E', b'L', b'F', ident, 1, 1];
    header.resize(16, 0);
    header.extend(2_u16.to_le_bytes());
    header.extend(machine.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.resize(size, 0);
    header
}
