//! Uprobes: the kernel counts calls of functions by a breakpoint in their file.
//!
//! This is the expensive alternative to patched entries, and a control for them: another mechanism,
//! which needs no added code in the program. A probe belongs to a file, so every process that maps
//! it is counted, including threads, children, programs that they execute, and libraries that are
//! loaded later. Each call costs a trap, some 300 to 600 ns, and several µs if the first
//! instruction must be single-stepped. The counters are tracepoints, in groups that are read in one
//! call.
//!
//! Probes are defined in tracefs, which is mounted for this process only if the system has not
//! mounted it, and removed with the counters. The kernel's `uprobe` unit, which needs no
//! definition, cannot be inherited: a child's copy is made from a path that the kernel reads in the
//! child's memory, and the program's `fork` fails (Linux 6.18). **Leaves out** returns from
//! functions. Source: `Documentation/trace/uprobetracer.rst`; perf_event_open(2).

use super::perf::{paranoid, Attributes, Group, Whose, DISABLED, ENABLE_ON_EXEC, INHERIT};
use crate::trace::{Metric, Source};
use crate::Error;
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Places where systems mount tracefs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The file of tracefs that defines probes.
const DEFINITIONS: &str = "uprobe_events";
/// The most counters of a group: reading it takes less than 16 KB.
const GROUP_MAX: usize = 512;
/// Makes the names of one process's definitions unique.
static RUN: AtomicU32 = AtomicU32::new(0);

const TRACEPOINT: u32 = 2;

/// A function in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of its metric in traces.
    pub metric: String,
    /// The file.
    pub path: PathBuf,
    /// Offset in bytes of its first instruction in the file.
    pub offset: u64,
}

/// Counters of calls.
#[derive(Debug)]
pub struct Uprobes {
    /// The groups of counters; one call reads each.
    pub groups: Vec<Group>,
    /// Indices of the entries that the kernel does not probe, with the reasons.
    pub refused: Vec<(usize, String)>,
    /// Events that keep the breakpoints in place.
    _everywhere: Vec<File>,
    /// The definitions. They are dropped last, because one that is in use cannot be removed.
    _definitions: Definitions,
}

impl Uprobes {
    /// Opens a counter for each of `entries`.
    ///
    /// # Errors
    /// [`Error::NoUprobes`] if the kernel has none, or does not let this user have any.
    pub fn open(entries: &[Entry], whose: Whose) -> Result<Uprobes, Error> {
        let mut definitions = Definitions::new().map_err(|error| none(&error, 0))?;
        let (mut groups, mut refused, mut everywhere) = (Vec::new(), Vec::new(), Vec::new());
        let (mut files, mut metrics) = (Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let number = match definitions.add(entry) {
                Ok(number) => number,
                Err(error) if is_of_all(&error) => return Err(none(&error, index)),
                Err(error) => {
                    refused.push((index, format!("the kernel does not probe it ({error})")));
                    continue;
                }
            };
            let failed = |error: std::io::Error| none(&error, index);
            everywhere.push(call(number, ProbeScope::Everybody, None).map_err(failed)?);
            files.push(call(number, ProbeScope::Of(whose), files.first()).map_err(failed)?);
            metrics.push(Metric::new(&entry.metric, Source::Software, "uprobe"));
            if files.len() == GROUP_MAX {
                let (files, metrics) = (std::mem::take(&mut files), std::mem::take(&mut metrics));
                groups.push(Group::of(files, metrics, whose).map_err(failed)?);
            }
        }
        if !files.is_empty() {
            let failed = |error: std::io::Error| none(&error, entries.len());
            groups.push(Group::of(files, metrics, whose).map_err(failed)?);
        }
        Ok(Uprobes { groups, refused, _everywhere: everywhere, _definitions: definitions })
    }
}

/// The definitions that were written to tracefs.
#[derive(Debug)]
struct Definitions {
    tracefs: OwnedFd,
    /// A name that no other process uses.
    group: String,
    count: usize,
}

impl Definitions {
    fn new() -> std::io::Result<Definitions> {
        let group = format!("lightfoot_{}_{}", std::process::id(), RUN.fetch_add(1, Ordering::Relaxed));
        let definitions = Definitions { tracefs: tracefs()?, group, count: 0 };
        definitions.file(DEFINITIONS, OFlags::WRONLY | OFlags::APPEND).map(|_| definitions)
    }

    fn file(&self, path: &str, flags: OFlags) -> std::io::Result<File> {
        Ok(File::from(openat(&self.tracefs, path, flags | OFlags::CLOEXEC, Mode::empty())?))
    }

    fn write_line(&self, line: &str) -> std::io::Result<()> {
        self.file(DEFINITIONS, OFlags::WRONLY | OFlags::APPEND)?.write_all(line.as_bytes())
    }

    /// Defines a probe; returns the number of its tracepoint.
    fn add(&mut self, entry: &Entry) -> std::io::Result<u64> {
        let plain = entry.path.to_str().filter(|path| !path.contains(char::is_whitespace));
        // A definition ends at a blank. The kernel resolves the path at once, so a path by
        // descriptor can stand for any.
        let held;
        let path = match plain {
            Some(path) => path.to_owned(),
            None => {
                held = File::open(&entry.path)?;
                format!("/proc/self/fd/{}", held.as_raw_fd())
            }
        };
        let name = format!("{}/f{}", self.group, self.count);
        self.write_line(&format!("p:{name} {path}:{:#x}\n", entry.offset))?;
        self.count += 1;
        let mut number = String::new();
        self.file(&format!("events/{name}/id"), OFlags::RDONLY)?.read_to_string(&mut number)?;
        number.trim().parse().map_err(std::io::Error::other)
    }
}

impl Drop for Definitions {
    fn drop(&mut self) {
        for number in 0..self.count {
            // A definition that cannot be removed stays and counts nothing.
            let _ = self.write_line(&format!("-:{}/f{number}\n", self.group));
        }
    }
}

/// A descriptor of tracefs: the system's mount, or a private one.
fn tracefs() -> rustix::io::Result<OwnedFd> {
    let folder = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    for path in TRACEFS {
        if let Ok(found) = openat(CWD, path, folder, Mode::empty()) {
            if rustix::fs::statat(&found, DEFINITIONS, rustix::fs::AtFlags::empty()).is_ok() {
                return Ok(found);
            }
        }
    }
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// The processes whose calls are counted.
#[derive(Clone, Copy, Debug)]
enum ProbeScope {
    /// These processes.
    Of(Whose),
    /// None, but the breakpoint is in all processes. The kernel removes it from a process when the
    /// task for which a counter was opened has ended, although threads that run together exchange
    /// their counters (Linux 6.18): without this, calls were lost once a thread had ended.
    Everybody,
}

fn call(number: u64, scope: ProbeScope, leader: Option<&File>) -> std::io::Result<File> {
    // Followers are enabled with their leader.
    let (flags, cpu): (u64, c_int) = match (scope, leader) {
        (ProbeScope::Everybody, _) => (DISABLED, 0),
        (ProbeScope::Of(_), None) => (INHERIT | DISABLED | ENABLE_ON_EXEC, -1),
        (ProbeScope::Of(_), Some(_)) => (INHERIT, -1),
    };
    let pid = match scope {
        ProbeScope::Everybody => -1,
        ProbeScope::Of(whose) => whose.pid()?,
    };
    Attributes::of(TRACEPOINT, number, flags).open(pid, cpu, leader)
}

/// Whether an error for one function would happen for all.
fn is_of_all(error: &std::io::Error) -> bool {
    let of_all = [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::MFILE, Errno::NFILE, Errno::NOSYS];
    Errno::from_io_error(error).is_some_and(|number| of_all.contains(&number))
}

/// The error for the case that no function can be counted.
fn none(error: &std::io::Error, opened: usize) -> Error {
    let why = match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            let setting = paranoid().map_or_else(|| "unreadable".to_owned(), |value| value.to_string());
            format!(
                "they take root (CAP_SYS_ADMIN for tracefs, in a container --privileged; kernel.perf_event_paranoid, here {setting}, alone does not \
                 give it)"
            )
        }
        Some(Errno::MFILE | Errno::NFILE) => {
            format!("each takes a descriptor, and after {opened} there are no more: raise 'ulimit -n', or name fewer functions")
        }
        Some(Errno::NOSYS) => "perf_event_open is not allowed here (a container's filter?)".into(),
        Some(Errno::NODEV | Errno::NOENT) => "this kernel has none (CONFIG_UPROBE_EVENTS)".into(),
        _ => format!("the kernel says {error}"),
    };
    Error::NoUprobes { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_are_none_is_said_with_the_setting_and_the_way_out() {
        let said = |number: Errno| none(&number.into(), 7).to_string();
        for number in [Errno::ACCESS, Errno::PERM, Errno::MFILE, Errno::NOSYS, Errno::NODEV, Errno::IO] {
            assert!(said(number).contains("--engine probe"), "{}", said(number));
        }
        assert!(said(Errno::PERM).contains("kernel.perf_event_paranoid"), "{}", said(Errno::PERM));
        assert!(said(Errno::MFILE).contains("after 7"), "{}", said(Errno::MFILE));
        assert!(!is_of_all(&Errno::INVAL.into()));
    }
}
