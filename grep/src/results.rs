//! Writes the results of several threads to one standard output, one file after the other.
//!
//! A thread collects the results of a file and hands them on when the file is done, so no thread
//! waits for a slow search. Small ones are put together, since a tree may have thousands of files
//! and a write costs as much as a search of a small one; whoever reads them waits no longer than
//! [`PROMPT`], or until the next file is done. Results may become large: `--vimgrep` prints a line
//! once for every match in it, so a line of 100 KB may give 10 GB. Then the thread takes the output
//! for itself, writes its results, and keeps writing until its file is done. So memory stays
//! bounded, and the others wait only when they have results to print.

use super::settings::Settings;
use super::stdout::Stdout;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use termcolor::{Buffer, ColorSpec, HyperlinkSpec, WriteColor};

/// At most this many bytes of one file are collected.
const COLLECTED_BYTES: usize = 4 << 20;

/// When a file is done, results are written if the last ones were written so long ago.
const PROMPT: Duration = Duration::from_millis(5);

/// Standard output, shared.
pub(super) struct Results<'s> {
    state: Mutex<State>,
    freed: Condvar,
    /// Whether results may wait in the output.
    waiting: AtomicBool,
    separator: Option<&'s [u8]>,
    colored: bool,
}

struct State {
    out: Stdout,
    /// Whether a thread writes the results of its file.
    taken: bool,
    /// Whether the results of a file were written.
    any: bool,
    /// When results were written last.
    written: Instant,
}

impl State {
    /// Begins another file.
    fn begin(&mut self, separator: Option<&[u8]>) -> io::Result<()> {
        if let Some(separator) = separator.filter(|_| self.any) {
            self.out.write_all(separator)?;
            self.out.write_all(b"\n")?;
        }
        self.any = true;
        Ok(())
    }
}

impl<'s> Results<'s> {
    pub(super) fn new(settings: &'s Settings) -> Results<'s> {
        let out = Stdout::new(settings);
        let colored = out.supports_color();
        let state = Mutex::new(State { out, taken: false, any: false, written: Instant::now() });
        let (freed, waiting, separator) =
            (Condvar::new(), AtomicBool::new(false), settings.file_separator.as_deref());
        Results { state, freed, waiting, separator, colored }
    }

    /// A writer for one thread.
    pub(super) fn writer(&self) -> Collected<'_, 's> {
        let buffer = if self.colored { Buffer::ansi() } else { Buffer::no_color() };
        Collected { results: self, buffer, owns: false }
    }

    /// Standard output, for the time when all threads are done.
    pub(super) fn into_out(self) -> Stdout {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).out
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the output is free.
    fn lock_free(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.taken {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Waits until the output is free, takes it, and begins another file.
    fn take(&self) -> io::Result<()> {
        let mut state = self.lock_free();
        state.taken = true;
        state.begin(self.separator)
    }

    /// Hands on the results of a whole file.
    fn add(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock_free();
        state.begin(self.separator)?;
        state.out.write_all(bytes)?;
        self.write_in_time(&mut state)
    }

    /// Writes what waits in the output, if it is time for that.
    fn write_in_time(&self, state: &mut State) -> io::Result<()> {
        let now = Instant::now();
        let is_time = now.duration_since(state.written) >= PROMPT;
        self.waiting.store(!is_time, Ordering::Relaxed);
        if !is_time {
            return Ok(());
        }
        state.written = now;
        state.out.flush()
    }

    /// A file without results is done.
    fn pass(&self) -> io::Result<()> {
        if !self.waiting.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Whoever has the output writes what waits there.
        let mut state = self.lock();
        if state.taken {
            return Ok(());
        }
        self.write_in_time(&mut state)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.lock().out.write_all(bytes)
    }

    fn free(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.taken = false;
        let flushed = state.out.flush();
        drop(state);
        self.freed.notify_one();
        flushed
    }
}

/// Output of one thread for one file.
pub(super) struct Collected<'r, 's> {
    results: &'r Results<'s>,
    buffer: Buffer,
    /// Whether this thread has the output until its file is done.
    owns: bool,
}

impl Collected<'_, '_> {
    /// Writes the collected results; the file is done.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let written = match (self.owns, self.buffer.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => self.write_through(),
            (false, true) => self.results.pass(),
            (false, false) => self.results.add(self.buffer.as_slice()),
        };
        written.and(self.give_up())
    }

    /// Discards the collected results; the file is done.
    pub(super) fn give_up(&mut self) -> io::Result<()> {
        self.buffer.clear();
        if std::mem::take(&mut self.owns) {
            self.results.free()?;
        }
        Ok(())
    }

    fn write_through(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.owns, true) {
            self.results.take()?;
        }
        let written = self.results.write(self.buffer.as_slice());
        self.buffer.clear();
        written
    }
}

impl Drop for Collected<'_, '_> {
    fn drop(&mut self) {
        // However the search of a file ended, no thread waits for its output. Errors were reported.
        let _ = self.give_up();
    }
}

impl std::fmt::Debug for Collected<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collected").field("bytes", &self.buffer.len()).field("owns", &self.owns).finish()
    }
}

impl Write for Collected<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.write_all(bytes)?;
        if self.buffer.len() < COLLECTED_BYTES {
            return Ok(());
        }
        self.write_through()
    }

    /// Results are written when they are large, or when the file is done.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteColor for Collected<'_, '_> {
    fn supports_color(&self) -> bool {
        self.buffer.supports_color()
    }

    fn supports_hyperlinks(&self) -> bool {
        self.buffer.supports_hyperlinks()
    }

    fn set_color(&mut self, spec: &ColorSpec) -> io::Result<()> {
        self.buffer.set_color(spec)
    }

    fn set_hyperlink(&mut self, link: &HyperlinkSpec) -> io::Result<()> {
        self.buffer.set_hyperlink(link)
    }

    fn reset(&mut self) -> io::Result<()> {
        self.buffer.reset()
    }

    fn is_synchronous(&self) -> bool {
        self.buffer.is_synchronous()
    }
}
