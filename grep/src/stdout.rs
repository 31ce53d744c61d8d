//! Standard output, in whole lines.
//!
//! Results are collected and written up to the end of a line, so that a Ctrl-C between two writes
//! leaves no half line. One during a write is kept until the line is out and then ends the process
//! as it would have; a second one ends it at once, as the reader of a pipe may have stopped
//! reading. Errors are those of the system; a closed pipe is for the caller to tell from others.
//! Left out: locking out other users of standard output, which nothing here has; messages wait for
//! [`turn`].

use super::arguments::{Buffering, Color};
use super::settings::Settings;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use termcolor::{Ansi, ColorSpec, HyperlinkSpec, WriteColor};

/// Results wait until there are so many bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Written at a time, and a line more where lines are long.
const BLOCK_BYTES: usize = 256 << 10;

/// A pipe holds so much where writes are large and the system permits it: fewer changes between
/// writer and reader.
const PIPE_BYTES: usize = 256 << 10;

/// `PIPE_BUF` of Linux.
const UNDIVIDED_BYTES: usize = 4096;

static TURN: Mutex<()> = Mutex::new(());

/// Held while a result is written, and by who wants to say something in between.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When waiting bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// At the end of each line.
    Lines,
    /// When there are many.
    Blocks,
}

/// Standard output. What waits is written when it is dropped.
#[derive(Debug)]
pub(super) struct Stdout {
    waiting: Vec<u8>,
    policy: Policy,
    colored: bool,
    /// What was written last did not end a line.
    within_line: bool,
    /// Since a write that may be divided, until the end of a line.
    held: Option<&'static Interruption>,
    /// The pipe's size was seen to.
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

    /// Writes bytes, the waiting ones first.
    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        let turn = turn();
        // The system does not divide what is smaller.
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
            // Not a pipe, or not permitted: it works as well, only slower.
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

fn is_colored(color: Color) -> bool {
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
        // Up to the end of a line, of a long one where it must be; a signal may come in between.
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
        // Who wants to know of an error flushes before.
        let _ = self.flush();
        self.release();
    }
}

/// What the handlers of signals and the writer tell each other.
#[derive(Debug)]
struct Interruption {
    /// Nothing is being written: a signal may end the process.
    idle: Arc<AtomicBool>,
    /// The signal that came during a write.
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// From here on a signal waits.
    fn hold() -> &'static Interruption {
        static INTERRUPTION: OnceLock<Interruption> = OnceLock::new();
        let interruption = INTERRUPTION.get_or_init(Interruption::install);
        interruption.idle.store(false, Ordering::SeqCst);
        interruption
    }

    /// From here on a signal ends the process; one that came ends it now.
    fn release(&self) {
        self.idle.store(true, Ordering::SeqCst);
        let signal = self.signal.load(Ordering::SeqCst);
        if signal != 0 {
            // Without an effect the search goes on and the next signal ends it.
            let _ = low_level::emulate_default_handler(signal as i32);
        }
    }

    /// Without handlers a signal ends the process at once, which is how it was before.
    fn install() -> Interruption {
        let idle = Arc::new(AtomicBool::new(true));
        let came = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM].into_iter().filter(|&number| !is_ignored(number)) {
            // In the order in which they are called: a signal that came before makes the second one
            // final.
            let _ = flag::register_conditional_default(number, Arc::clone(&idle));
            let _ = flag::register_conditional_default(number, Arc::clone(&came));
            let _ = flag::register_usize(number, Arc::clone(&signal), number as usize);
            let _ = flag::register(number, Arc::clone(&came));
        }
        Interruption { idle, signal }
    }
}

/// Whether who started this process wants it to ignore a signal, as shells do for what runs in the
/// background.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
