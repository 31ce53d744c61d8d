//! A scheduler and executors as processes of one machine, on the loopback address.
//!
//! Each is a process of its own, so that one can be killed as a machine can fail. Each holds the
//! reading end of a pipe of the process that started it, and ends when that is closed: nothing is
//! left behind, however the starter ends.

use std::io::{self, BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long an executor may take to listen.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often an executor is started on other ports, when some other program took one meanwhile.
const MOST_STARTS: usize = 5;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The number of executors.
    pub executors: usize,
    /// An executor that gave no sign of life for so long is dead; at least some seconds, as one on
    /// a busy machine may be late.
    pub silence: Duration,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions { executors: 2, silence: crate::SILENCE }
    }
}

/// A scheduler and its executors, which end with this value.
#[derive(Debug)]
pub struct Cluster {
    executors: Vec<Executor>,
    _scheduler: Process,
    address: String,
}

#[derive(Debug)]
struct Executor {
    process: Process,
    folder: TempDir,
}

/// A process that is killed when the value is dropped.
#[derive(Debug)]
struct Process {
    child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cluster {
    /// Starts a scheduler and executors of one task at a time, by the program
    /// `lightfoot-ballista`, and waits until they listen.
    ///
    /// # Errors
    /// The program is not there, or a process ends before it listens.
    pub fn start(program: &Path, options: &ClusterOptions) -> io::Result<Cluster> {
        let mut command = Command::new(program);
        command
            .args(["scheduler", "--with-starter", "--silence-seconds"])
            .arg(options.silence.as_secs().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut scheduler = Process { child: command.spawn()? };
        let mut address = String::new();
        let output = scheduler.child.stdout.take().expect("the output is a pipe");
        BufReader::new(output).read_line(&mut address)?;
        let address = address.trim().to_owned();
        if address.is_empty() {
            return Err(io::Error::other("the scheduler ended before it listened"));
        }
        let executors =
            (0..options.executors).map(|_| Executor::start(program, &address)).collect::<io::Result<_>>()?;
        Ok(Cluster { executors, _scheduler: scheduler, address })
    }

    /// The scheduler's address, for [`session`](crate::session).
    pub fn url(&self) -> String {
        format!("df://{}", self.address)
    }

    /// The number of executors, killed ones included.
    pub fn executors(&self) -> usize {
        self.executors.len()
    }

    /// The folder where an executor keeps the results of its tasks.
    ///
    /// # Panics
    /// When there is no such executor.
    pub fn folder(&self, executor: usize) -> &Path {
        self.executors[executor].folder.path()
    }

    /// Kills an executor at once (SIGKILL) and removes its results, as if its machine had failed.
    ///
    /// # Errors
    /// It cannot be killed, or its folder cannot be removed.
    ///
    /// # Panics
    /// When there is no such executor.
    pub fn kill_executor(&mut self, executor: usize) -> io::Result<()> {
        let executor = &mut self.executors[executor];
        executor.process.child.kill()?;
        executor.process.child.wait()?;
        std::fs::remove_dir_all(executor.folder.path())
    }
}

impl Executor {
    fn start(program: &Path, scheduler: &str) -> io::Result<Executor> {
        let folder = tempfile::Builder::new().prefix("lightfoot-executor-").tempdir()?;
        let patience = Instant::now() + PATIENCE;
        for _ in 0..MOST_STARTS {
            let (port, message_port) = free_ports()?;
            let mut command = Command::new(program);
            command
                .args(["executor", "--with-starter", "--scheduler", scheduler, "--tasks", "1"])
                .args(["--port", &port.to_string(), "--message-port", &message_port.to_string()])
                .arg("--folder")
                .arg::<PathBuf>(folder.path().into())
                .stdin(Stdio::piped());
            let mut process = Process { child: command.spawn()? };
            // One that ends found a port taken, most likely.
            while process.child.try_wait()?.is_none() {
                if [port, message_port].iter().all(|&port| TcpStream::connect(("127.0.0.1", port)).is_ok()) {
                    return Ok(Executor { process, folder });
                }
                if Instant::now() > patience {
                    return Err(io::Error::other(format!(
                        "the executor did not listen within {} seconds",
                        PATIENCE.as_secs()
                    )));
                }
                sleep(Duration::from_millis(20));
            }
        }
        Err(io::Error::other("the executor ended before it listened; its messages say why"))
    }
}

/// Two ports that were free a moment ago: an executor is told its ports rather than asked for them.
fn free_ports() -> io::Result<(u16, u16)> {
    let (one, other) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    Ok((one.local_addr()?.port(), other.local_addr()?.port()))
}
