//! Results of several threads on one standard output, one file after the other.
//!
//! A thread collects what it prints of a file and hands it over when the file is done, so that
//! nobody waits for a slow search. Where that gets large (`--vimgrep` prints a line once for every
//! match in it, so a line of 100 KB may come to 10 GB) the thread takes the output for itself,
//! writes what it has, and goes on writing through until its file is done: memory stays bounded,
//! and the others wait only when they have something to print.

use super::settings::Settings;
use super::stdout::Stdout;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use termcolor::{Buffer, ColorSpec, HyperlinkSpec, WriteColor};

/// More than this is not collected of one file.
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
    /// A thread writes the results of its file.
    taken: bool,
    /// The results of a file were written.
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

    /// Standard output alone, when all threads are done.
    pub(super) fn into_out(self) -> Stdout {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).out
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the output is free, takes it and begins with another file.
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

/// What one thread prints of one file.
pub(super) struct Collected<'r, 's> {
    results: &'r Results<'s>,
    buffer: Buffer,
    /// The output is this thread's until its file is done.
    owns: bool,
}

impl Collected<'_, '_> {
    /// Prints what was collected; the file is done.
    ///
    /// # Errors
    /// What writing says.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let written = if self.buffer.is_empty() { Ok(()) } else { self.write_through() };
        written.and(self.give_up())
    }

    /// Forgets what was collected; the file is done.
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

/// For another thread, which has printed nothing.
impl Clone for Collected<'_, '_> {
    fn clone(&self) -> Self {
        self.results.writer()
    }
}

impl Drop for Collected<'_, '_> {
    fn drop(&mut self) {
        // Whatever ended the search of a file: nobody waits for its output. Errors were told.
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

    /// Results come out when there are many, or all.
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
