//! Standard output, in whole lines.
//!
//! Results are collected and written up to the end of a line, so a Ctrl-C between two writes leaves
//! no half line. A Ctrl-C during a write waits until the line is written, and then ends the process
//! as usual. A second one ends it at once, because the reader of a pipe may have stopped reading.
//! Errors are those of the system; callers distinguish a closed pipe from others. **Leaves out**
//! other users of standard output, which do not exist here. Messages wait for [`turn`].

use super::arguments::{Buffering, Color};
use super::settings::Settings;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use termcolor::{Ansi, ColorSpec, HyperlinkSpec, WriteColor};

/// Results are written when they have this many bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that are written at a time, plus the rest of the last line.
const BLOCK_BYTES: usize = 256 << 10;

/// The size that a pipe gets for large writes, if the system permits it: larger pipes mean fewer
/// switches between writer and reader.
const PIPE_BYTES: usize = 256 << 10;

/// `PIPE_BUF` of Linux.
const UNDIVIDED_BYTES: usize = 4096;

static TURN: Mutex<()> = Mutex::new(());

/// The lock that is held while a result or a message is written.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When collected bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// At the end of each line.
    Lines,
    /// When there are many bytes.
    Blocks,
}

/// Standard output. It writes its collected bytes when it is dropped.
#[derive(Debug)]
pub(super) struct Stdout {
    waiting: Vec<u8>,
    policy: Policy,
    colored: bool,
    /// Whether the last write did not end a line.
    within_line: bool,
    /// Holds back signals from the first write that may be divided until the end of a line.
    held: Option<&'static Interruption>,
    /// Whether the pipe's size was set.
    sized: bool,
}

impl Stdout {
    pub(super) fn new(settings: &Settings) -> Stdout {
        let policy = match settings.arguments.buffering {
            Buffering::Line => Policy::Lines,
            Buffering::Auto if settings.terminal => Policy::Lines,
            Buffering::Auto | Buffering::Block => Policy::Blocks,
        };
        let colored = is_colored(settings.color);
        Stdout { waiting: Vec::new(), policy, colored, within_line: false, held: None, sized: false }
    }

    /// Writes the collected bytes and then these.
    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        let turn = turn();
        // The system does not divide writes that are smaller.
        if self.held.is_none() && self.waiting.len() + bytes.len() > UNDIVIDED_BYTES {
            self.held = Some(Interruption::hold());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.all(&waiting).and_then(|()| self.all(bytes));
        self.waiting = waiting;
        self.waiting.clear();
        drop(turn);
        if !self.within_line || written.is_err() {
            self.release();
        }
        written
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            held.release();
        }
    }

    fn all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Some(&last) = bytes.last() {
            self.within_line = !matches!(last, b'\n' | 0);
        }
        if bytes.len() >= PIPE_BYTES / 2 && !self.sized {
            self.sized = true;
            // If it is no pipe, or this is not permitted, output is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(rustix::stdio::stdout(), PIPE_BYTES);
        }
        while !bytes.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Whether results are printed in colours.
pub(super) fn is_colored(color: Color) -> bool {
    match color {
        Color::Never => false,
        Color::Auto => grep_cli::stdout(termcolor::ColorChoice::Auto).supports_color(),
        Color::Always | Color::Ansi => true,
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = self.waiting.len() + bytes.len() <= BUFFER_BYTES;
        let ends_line = self.policy == Policy::Lines && memchr::memchr(b'\n', bytes).is_some();
        if fits && !ends_line {
            self.waiting.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        // Writes up to the end of a line, or a part of a long one; a signal may end the process in
        // between.
        let near = &bytes[..bytes.len().min(BLOCK_BYTES)];
        let whole = match memchr::memrchr(b'\n', near) {
            Some(at) => at + 1,
            None => memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1),
        };
        self.write_through(&bytes[..whole])?;
        Ok(whole)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.write_through(&[])
    }
}

impl WriteColor for Stdout {
    fn supports_color(&self) -> bool {
        self.colored
    }

    fn supports_hyperlinks(&self) -> bool {
        self.colored
    }

    fn set_color(&mut self, spec: &ColorSpec) -> io::Result<()> {
        if self.colored {
            Ansi::new(self).set_color(spec)?;
        }
        Ok(())
    }

    fn set_hyperlink(&mut self, link: &HyperlinkSpec<'_>) -> io::Result<()> {
        if self.colored {
            Ansi::new(self).set_hyperlink(link)?;
        }
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        if self.colored {
            Ansi::new(self).reset()?;
        }
        Ok(())
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        // Callers that need the error flush before.
        let _ = self.flush();
        self.release();
    }
}

/// The state that signal handlers and the writer share.
#[derive(Debug)]
struct Interruption {
    /// Whether nothing is being written, so that a signal may end the process.
    idle: Arc<AtomicBool>,
    /// The signal that arrived during a write.
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// Makes signals wait from here on.
    fn hold() -> &'static Interruption {
        static INTERRUPTION: OnceLock<Interruption> = OnceLock::new();
        let interruption = INTERRUPTION.get_or_init(Interruption::install);
        interruption.idle.store(false, Ordering::SeqCst);
        interruption
    }

    /// Lets signals end the process again. One that waited ends it now.
    fn release(&self) {
        self.idle.store(true, Ordering::SeqCst);
        let signal = self.signal.load(Ordering::SeqCst);
        if signal != 0 {
            // If this has no effect, the search continues and the next signal ends it.
            let _ = low_level::emulate_default_handler(signal as i32);
        }
    }

    /// If handlers cannot be installed, a signal ends the process at once.
    fn install() -> Interruption {
        let idle = Arc::new(AtomicBool::new(true));
        let came = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM].into_iter().filter(|&number| !is_ignored(number)) {
            // Handlers are called in this order, so a signal that came before makes the second one
            // final.
            let _ = flag::register_conditional_default(number, Arc::clone(&idle));
            let _ = flag::register_conditional_default(number, Arc::clone(&came));
            let _ = flag::register_usize(number, Arc::clone(&signal), number as usize);
            let _ = flag::register(number, Arc::clone(&came));
        }
        Interruption { idle, signal }
    }
}

/// Whether the parent process made this one ignore a signal, as shells do for background jobs.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
