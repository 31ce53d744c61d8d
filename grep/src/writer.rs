//! Where a thread prints: standard output, or what it collects for a file.
//!
//! Printers are generic over their writer and are compiled again for each type of it; this is one
//! type for both, so that they are compiled once.

use super::results::Collected;
use super::stdout::Stdout;
use std::io::{self, Write};
use termcolor::{ColorSpec, HyperlinkSpec, WriteColor};

/// The writer of a thread's results.
#[derive(Debug)]
pub(super) enum Writer<'r, 's> {
    /// Standard output, of the only thread.
    Out(Stdout),
    /// The results of one file, which one of several threads collects.
    Collected(Collected<'r, 's>),
}

impl Writer<'_, '_> {
    /// Writes the results of the file that is done.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Writer::Out(out) => out.flush(),
            Writer::Collected(collected) => collected.finish(),
        }
    }

    /// Discards what was collected for the file that is done.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn give_up(&mut self) -> io::Result<()> {
        match self {
            Writer::Out(_) => Ok(()),
            Writer::Collected(collected) => collected.give_up(),
        }
    }

    fn inner(&self) -> &dyn WriteColor {
        match self {
            Writer::Out(out) => out,
            Writer::Collected(collected) => collected,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn WriteColor {
        match self {
            Writer::Out(out) => out,
            Writer::Collected(collected) => collected,
        }
    }
}

impl Write for Writer<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Out(out) => out.write(bytes),
            Writer::Collected(collected) => collected.write(bytes),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writer::Out(out) => out.write_all(bytes),
            Writer::Collected(collected) => collected.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner_mut().flush()
    }
}

impl WriteColor for Writer<'_, '_> {
    fn supports_color(&self) -> bool {
        self.inner().supports_color()
    }

    fn supports_hyperlinks(&self) -> bool {
        self.inner().supports_hyperlinks()
    }

    fn set_color(&mut self, spec: &ColorSpec) -> io::Result<()> {
        self.inner_mut().set_color(spec)
    }

    fn set_hyperlink(&mut self, link: &HyperlinkSpec) -> io::Result<()> {
        self.inner_mut().set_hyperlink(link)
    }

    fn reset(&mut self) -> io::Result<()> {
        self.inner_mut().reset()
    }

    fn is_synchronous(&self) -> bool {
        self.inner().is_synchronous()
    }
}
