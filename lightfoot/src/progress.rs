//! The line that says a run is still alive: on a terminal only, after two seconds, gone before the report.

use instrument::Progress;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// A shorter run needs no reassurance.
const QUIET: Duration = Duration::from_secs(2);
/// Back to the line's start, and erase it.
const ERASE: &str = "\r\x1b[K";

/// Where progress goes.
#[derive(Debug)]
pub struct Line {
    screen: Screen,
    shown: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Screen {
    Terminal,
    None,
}

impl Line {
    /// On standard error where that is a terminal that can erase a line.
    pub fn new() -> Line {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let screen = if std::io::stderr().is_terminal() && !dumb { Screen::Terminal } else { Screen::None };
        Line { screen, shown: None }
    }

    /// Draws, at most once a second.
    pub fn draw(&mut self, progress: &Progress) {
        let seconds = progress.wall.as_secs();
        if self.screen == Screen::None || progress.wall < QUIET || self.shown == Some(seconds) {
            return;
        }
        self.shown = Some(seconds);
        // A terminal that went away is no reason to stop measuring.
        let _ =
            write!(std::io::stderr(), "{ERASE}lightfoot: {seconds} s, {} blocks translated", progress.blocks);
    }

    /// Leaves the terminal as it was.
    pub fn erase(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(std::io::stderr(), "{ERASE}");
        }
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::new()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.erase();
    }
}
