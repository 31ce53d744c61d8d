//! The line that says a run is still alive: on a terminal only, after two seconds, gone before the
//! report. It is erased by blanks: who wants no colours (`NO_COLOR`) reads a log in which no escape
//! sequence may be, and how long a run takes must not decide whether there is one.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// A shorter run needs no reassurance.
const QUIET: Duration = Duration::from_secs(2);

/// Where progress goes.
#[derive(Debug)]
pub struct Line {
    screen: Screen,
    /// The second that is shown, and how wide the line is.
    shown: Option<(u64, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Screen {
    Terminal,
    None,
}

impl Line {
    /// On standard error where that is a terminal that can go back to a line's start.
    pub fn new() -> Line {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let screen = if std::io::stderr().is_terminal() && !dumb { Screen::Terminal } else { Screen::None };
        Line { screen, shown: None }
    }

    /// Draws how long the run has taken and what it has done, at most once a second.
    pub fn draw(&mut self, wall: Duration, done: impl std::fmt::Display) {
        let seconds = wall.as_secs();
        if self.screen == Screen::None
            || wall < QUIET
            || self.shown.is_some_and(|(shown, _)| shown == seconds)
        {
            return;
        }
        let line = format!("lightfoot: {seconds} s, {done}");
        // What is new covers what was there.
        let width = self.shown.map_or(0, |(_, width)| width).max(line.len());
        self.shown = Some((seconds, width));
        // A terminal that went away is no reason to stop measuring.
        let _ = write!(std::io::stderr(), "\r{line:width$}");
    }

    /// Leaves the terminal as it was.
    pub fn erase(&mut self) {
        if let Some((_, width)) = self.shown.take() {
            let _ = write!(std::io::stderr(), "\r{:width$}\r", "");
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
