//! `perf_event_open`: a group of the kernel's counters, which everything that the program starts
//! inherits, and which one call reads.
//!
//! The first event leads; the others share its context, so one `read` returns all totals of one
//! moment with the times in which they were enabled and running. Counters start when the program
//! executes (`enable_on_exec`). No library has a wrapper, hence the raw system call and a copy of
//! the first 96 bytes of `perf_event_attr`, which suffice here. This file alone of the crate uses
//! `libc`: for that call, and for signals, which `rustix` leaves to the C library.
//!
//! Two properties of the kernel need care. First, when a thread ends, its copies of the events
//! leave the group one by one, the latest first, each after its count was added to the original's.
//! Until the last one has left, reading the group fails (ECHILD), and for a moment the first one to
//! leave is counted twice. So the last event of a group counts nothing, and a group that cannot be
//! read is read event by event, which waits for the copies that leave. Second, threads with the
//! same inherited events exchange them instead of switching. A child that is started then may get
//! the original, whose `enable_on_exec` its exec uses up, and the next child never counts. An event
//! that is not inherited makes the opening thread differ from its children, so nothing is
//! exchanged.
//!
//! The leader can set the pace: it then overflows after each period, in any thread, and the kernel
//! sends SIGIO to the thread that requested it ([`Alarm`]), which blocks the signal and reads it
//! from a descriptor. No ring is mapped: the kernel has none for inherited events that move between
//! processors, and only the time of the overflow is needed. **Leaves out** samples (`sampled.rs`)
//! and multiplexing by this crate. Source: perf_event_open(2), fcntl(2), signalfd(2);
//! `include/uapi/linux/perf_event.h`.

use super::counters::{Counters, Times};
use super::event::Event;
use crate::trace::{Metric, Source};
use crate::Error;
use rustix::fs::{fcntl_setfl, OFlags};
use rustix::io::Errno;
use rustix::process::RawPid;
use rustix::time::ClockId;
use std::ffi::{c_int, c_ulong};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The beginning of `struct perf_event_attr`, version 3: 96 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
}

impl Attributes {
    /// An event that is read with the times in which it was enabled and counted.
    pub(super) fn of(kind: u32, config: u64, flags: u64) -> Attributes {
        Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING,
            // A group has one clock.
            flags: USE_CLOCK | flags,
            wakeup_events: 0,
            breakpoint_type: 0,
            config1: 0,
            config2: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clock: ClockId::Monotonic as i32,
        }
    }

    /// A clock that writes a record with time, thread and the totals of its group after each period
    /// in each thread, and when a thread ends.
    pub(super) fn sampled(clock: &Event, period_ns: u64) -> Attributes {
        let flags = INHERIT | DISABLED | ENABLE_ON_EXEC | TASK;
        let mut attributes = Attributes::of(clock.kind, clock.config, flags);
        attributes.sample_period = period_ns;
        attributes.sample_type = SAMPLE_THREAD | SAMPLE_TIME | SAMPLE_READ;
        attributes.read_format |= GROUP;
        attributes
    }

    /// Restricts the event to user mode.
    pub(super) fn of_user(mut self) -> Attributes {
        self.flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        self
    }

    /// An event that counts nothing.
    fn nothing(flags: u64) -> Attributes {
        Attributes::of(SOFTWARE, NOTHING, flags).of_user()
    }

    /// Opens the event for process or thread `pid` (0: the caller, -1: all), on `cpu` (-1: all), in
    /// the group of `leader`.
    pub(super) fn open(&self, pid: RawPid, cpu: c_int, leader: Option<&File>) -> std::io::Result<File> {
        let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: the structure is a perf_event_attr of version 3 with 96 bytes, as its size says,
        // and lives through the call, which only reads it.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const *self, pid, cpu, leader, CLOSE_ON_EXEC)
        };
        match i32::try_from(fd) {
            // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
            Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

pub(super) const DISABLED: u64 = 1;
pub(super) const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const USE_CLOCK: u64 = 1 << 25;

const SAMPLE_THREAD: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_READ: u64 = 1 << 4;

const SOFTWARE: u32 = 1;
/// The software event of that kind.
const NOTHING: u64 = 9;

const TOTAL_TIME_ENABLED: u64 = 1;
const TOTAL_TIME_RUNNING: u64 = 1 << 1;
const GROUP: u64 = 1 << 3;

const CLOSE_ON_EXEC: c_ulong = 1 << 3;

/// Words before the totals of a group that is read: the number of events, and two times.
const HEAD_WORDS: usize = 3;

/// The processes whose events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The process with this number, from its next exec on.
    Process(u32),
    /// All processes that this thread starts from now on, each from its exec on. The thread itself
    /// is not counted.
    Children,
    /// The thread with this number, which runs already, and all that it starts, from now on.
    Thread(u32),
}

impl Whose {
    /// The process number for the system call.
    pub(super) fn pid(self) -> std::io::Result<RawPid> {
        match self {
            Whose::Process(pid) | Whose::Thread(pid) => RawPid::try_from(pid).map_err(std::io::Error::other),
            Whose::Children => Ok(0),
        }
    }
}

/// Whether the first event of a group also sets the pace of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// The first event only counts.
    None,
    /// The first event raises [`Group::alarm`] in each thread after this many of the thread's
    /// events.
    Every(u64),
}

/// A group of the kernel's counters that are read in one call.
#[derive(Debug)]
pub struct Group {
    /// One for each metric; the first leads.
    counters: Vec<File>,
    /// The group's last event, which counts nothing.
    whole: File,
    /// An event that prevents the kernel from exchanging this thread's events with those of its
    /// children.
    _anchor: Option<File>,
    metrics: Vec<Metric>,
    buffer: Vec<u8>,
}

impl Group {
    /// Opens counters for one or more `events`.
    ///
    /// # Errors
    /// The first event that cannot be counted, and why: [`Error::NoPmu`], [`Error::Unsupported`],
    /// [`Error::NotAllowed`], [`Error::Io`].
    pub fn open(events: &[&'static Event], whose: Whose) -> Result<Group, Error> {
        Group::open_paced(events, whose, Period::None)
    }

    /// Opens counters for `events`, the first of which may set the pace.
    ///
    /// # Errors
    /// The first event that cannot be counted, and why: [`Error::NoPmu`], [`Error::Unsupported`],
    /// [`Error::NotAllowed`], [`Error::Io`].
    pub fn open_paced(events: &[&'static Event], whose: Whose, period: Period) -> Result<Group, Error> {
        let mut files: Vec<File> = Vec::with_capacity(events.len());
        let mut metrics = Vec::with_capacity(events.len());
        for event in events {
            let (file, reach) = open_event(event, whose, -1, files.first(), period)?;
            files.push(file);
            metrics.push(Metric::new(event.name, event.source, reach));
        }
        Group::of(files, metrics, whose).map_err(|error| Error::io("open a group of counters", error))
    }

    /// Makes a group of counters that were opened with their own times; the first leads.
    pub(super) fn of(counters: Vec<File>, metrics: Vec<Metric>, whose: Whose) -> std::io::Result<Group> {
        let leader = counters.first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut last = Attributes::nothing(INHERIT);
        last.read_format |= GROUP;
        let whole = last.open(whose.pid()?, -1, Some(leader))?;
        let anchor = anchor(whose)?;
        let buffer = vec![0; Group::bytes(metrics.len())];
        Ok(Group { counters, whole, _anchor: anchor, metrics, buffer })
    }

    /// Bytes that a read of the descriptor of a group of `counters` counters gives.
    pub fn bytes(counters: usize) -> usize {
        8 * (HEAD_WORDS + counters + 1)
    }

    /// Begins to report the overflows of a paced group, until the alarm is dropped by the same
    /// thread.
    ///
    /// # Errors
    /// The system's error.
    pub fn alarm(&self) -> Result<Alarm, Error> {
        Alarm::new(&self.counters[0]).map_err(|error| Error::io("wait for a counter", error))
    }

    /// The descriptor from which the whole group is read.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.whole.as_fd()
    }
}

/// Reports overflows of a counter: its descriptor becomes readable.
#[derive(Debug)]
pub struct Alarm {
    signals: OwnedFd,
    leader: File,
    /// The thread's previous mask.
    mask: libc::sigset_t,
}

/// `struct f_owner_ex`: a thread.
#[repr(C)]
struct Owner {
    kind: c_int,
    id: RawPid,
}

const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

impl Alarm {
    fn new(leader: &File) -> std::io::Result<Alarm> {
        let leader = leader.try_clone()?;
        // SAFETY: both sets are values of this frame that sigemptyset fills before they are read,
        // and no call keeps a pointer to them.
        let (signals, mask) = unsafe {
            let (mut own, mut mask): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut own);
            libc::sigaddset(&raw mut own, libc::SIGIO);
            let signals = libc::signalfd(-1, &raw const own, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if signals < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let signals = OwnedFd::from_raw_fd(signals);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const own, &raw mut mask) {
                0 => (signals, mask),
                error => return Err(std::io::Error::from_raw_os_error(error)),
            }
        };
        let alarm = Alarm { signals, leader, mask };
        alarm.notify(OFlags::ASYNC).map(|()| alarm)
    }

    /// Sets the descriptor's flags: O_ASYNC, or nothing.
    fn notify(&self, flags: OFlags) -> std::io::Result<()> {
        let owner = Owner { kind: F_OWNER_TID, id: rustix::thread::gettid().as_raw_nonzero().get() };
        // SAFETY: F_SETOWN_EX reads one `f_owner_ex`, which lives through the call.
        let owned = unsafe { libc::fcntl(self.leader.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
        if owned != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(fcntl_setfl(&self.leader, flags)?)
    }

    /// Discards the overflows that were reported so far.
    pub fn clear(&self) {
        // Room for one `signalfd_siginfo`; the signal is never queued twice.
        let mut one = [0_u8; 128];
        while rustix::io::read(&self.signals, &mut one).is_ok_and(|bytes| bytes > 0) {}
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

impl Drop for Alarm {
    /// The default action of a signal that is still waiting would end this process.
    fn drop(&mut self) {
        if self.notify(OFlags::empty()).is_err() {
            return;
        }
        self.clear();
        // SAFETY: `mask` was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut()) };
    }
}

impl Counters for Group {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        let read = match self.whole.read(&mut self.buffer) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CHILD) => {
                one_by_one(&mut self.counters, |index, value| totals[index] = value)
            }
            Err(error) => Err(error),
            Ok(length) => Group::parse(&self.buffer[..length], totals)
                .ok_or_else(|| std::io::Error::other(format!("{length} bytes of {}", self.buffer.len()))),
        };
        read.map_err(|error| Error::io("read the counters", error))
    }
}

impl Group {
    /// Parses the bytes that a read of a whole group returns; `None` if they are not those of
    /// `totals.len()` counters.
    pub fn parse(read: &[u8], totals: &mut [u64]) -> Option<Times> {
        if read.len() != Group::bytes(totals.len()) || word(read, 0) != totals.len() as u64 + 1 {
            return None;
        }
        for (index, total) in totals.iter_mut().enumerate() {
            *total = word(read, HEAD_WORDS + index);
        }
        Some(Times { enabled_ns: word(read, 1), running_ns: word(read, 2) })
    }
}

/// Reads counters one after the other, thus at slightly different moments. The times are those of
/// the first counter.
pub(super) fn one_by_one(counters: &mut [File], mut take: impl FnMut(usize, u64)) -> std::io::Result<Times> {
    let mut times = Times::default();
    for (index, counter) in counters.iter_mut().enumerate().rev() {
        let mut words = [0; 24];
        counter.read_exact(&mut words)?;
        take(index, word(&words, 0));
        times = Times { enabled_ns: word(&words, 1), running_ns: word(&words, 2) };
    }
    Ok(times)
}

/// Opens the event that prevents the exchange of this thread's events with those of its children.
pub(super) fn anchor(whose: Whose) -> std::io::Result<Option<File>> {
    match whose {
        Whose::Children => Attributes::nothing(DISABLED).open(0, -1, None).map(Some),
        Whose::Process(_) | Whose::Thread(_) => Ok(None),
    }
}

pub(super) fn word(read: &[u8], index: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&read[8 * index..8 * index + 8]);
    u64::from_ne_bytes(bytes)
}

/// Opens one event. If the user may not count it in the kernel, it is counted in user mode only,
/// and its mechanism says so.
pub(super) fn open_event(
    event: &'static Event,
    whose: Whose,
    cpu: c_int,
    leader: Option<&File>,
    period: Period,
) -> Result<(File, &'static str), Error> {
    let attributes = attributes(event, whose, leader, period);
    let open = |attributes: Attributes| attributes.open(whose.pid()?, cpu, leader);
    match open(attributes) {
        Ok(file) => Ok((file, "perf")),
        Err(error) if is_refusal(&error) => {
            let file = open(attributes.of_user()).map_err(|error| explain(event, error))?;
            Ok((file, "perf, user mode only"))
        }
        Err(error) => Err(explain(event, error)),
    }
}

fn attributes(event: &Event, whose: Whose, leader: Option<&File>, period: Period) -> Attributes {
    // Followers are enabled with their leader.
    let own = match (whose, leader) {
        (Whose::Process(_) | Whose::Children, None) => DISABLED | ENABLE_ON_EXEC,
        (Whose::Thread(_), _) | (_, Some(_)) => 0,
    };
    let mut attributes = Attributes::of(event.kind, event.config, INHERIT | own);
    if let (Period::Every(period), None) = (period, leader) {
        attributes.sample_period = period;
    }
    attributes
}

pub(super) fn is_refusal(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ACCESS | Errno::PERM))
}

/// Why an event cannot be counted.
pub(super) fn explain(event: &'static Event, error: std::io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            // A setting that allows counting was not the reason for the refusal.
            Error::NotAllowed { event: event.name, paranoid: paranoid().filter(|level| *level > 2) }
        }
        Some(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL)
            if event.source == Source::Pmu =>
        {
            match has_pmu() {
                true => Error::Unsupported { event: event.name },
                false => Error::NoPmu { event: event.name },
            }
        }
        Some(Errno::NOSYS) => Error::NotAllowed { event: event.name, paranoid: None },
        _ => Error::io("open a counter", error),
    }
}

/// The value of `kernel.perf_event_paranoid`.
pub(super) fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Whether the kernel offers a processor's counters; hybrid processors have one unit per kind of
/// core.
fn has_pmu() -> bool {
    let folder = Path::new("/sys/bus/event_source/devices");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    std::fs::read_dir(folder)
        .is_ok_and(|entries| entries.filter_map(name).any(|name| name.starts_with("cpu")))
}
