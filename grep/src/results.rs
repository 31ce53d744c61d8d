//! Writes the results of several threads to one standard output, one file after the other.
//!
//! A thread collects the results of a file and writes them when the file is done, so no thread
//! waits for a slow search. Results may become large: `--vimgrep` prints a line once for every
//! match in it, so a line of 100 KB may give 10 GB. Then the thread takes the output for itself,
//! writes its results, and keeps writing until its file is done. So memory stays bounded, and the
//! others wait only when they have results to print.

use super::settings::Settings;
use super::stdout::Stdout;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use termcolor::{Buffer, ColorSpec, HyperlinkSpec, WriteColor};

/// At most this many bytes of one file are collected.
const COLLECTED_BYTES: usize = 4 << 20;

/// Standard output, shared.
pub(super) struct Results<'s> {
    state: Mutex<State>,
    freed: Condvar,
    separator: Option<&'s [u8]>,
    colored: bool,
}

struct State {
    out: Stdout,
    /// Whether a thread writes the results of its file.
    taken: bool,
    /// Whether the results of a file were written.
    any: bool,
}

impl<'s> Results<'s> {
    pub(super) fn new(settings: &'s Settings) -> Results<'s> {
        let out = Stdout::new(settings);
        let colored = out.supports_color();
        let state = Mutex::new(State { out, taken: false, any: false });
        Results { state, freed: Condvar::new(), separator: settings.file_separator.as_deref(), colored }
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

    /// Waits until the output is free, takes it, and begins another file.
    fn take(&self) -> io::Result<()> {
        let mut state = self.lock();
        while state.taken {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.taken = true;
        if let Some(separator) = self.separator.filter(|_| state.any) {
            state.out.write_all(separator)?;
            state.out.write_all(b"\n")?;
        }
        state.any = true;
        Ok(())
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
        let written = if self.buffer.is_empty() { Ok(()) } else { self.write_through() };
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
