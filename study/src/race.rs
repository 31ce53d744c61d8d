//! Races of commands: interleaved rounds, wall time, medians.
//!
//! Contenders take turns within a round, so that a machine that slows down slows all of them; a
//! median forgives a disturbed run. A run that fails or takes too long is a result and is said, not
//! an error. Source: Mytkowicz et al. 2009 on measurement bias.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No run may take longer.
const LIMIT: Duration = Duration::from_secs(1200);

/// Variable that says where a peer was built by hand.
pub const PEER_HOME: &str = "DYNAMORIO_HOME";

/// Variable that names the binary of a former build of lightfoot.
pub const FORMER: &str = "LIGHTFOOT_FORMER";

/// A command line, with all that makes it repeat.
#[derive(Clone, Debug)]
pub struct Line {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Variables beside the inherited ones.
    pub env: Vec<(&'static str, &'static str)>,
    /// Working directory.
    pub folder: PathBuf,
}

impl Line {
    /// A line with `before` in front.
    pub fn under(&self, before: impl IntoIterator<Item = OsString>) -> Line {
        Line { words: before.into_iter().chain(self.words.iter().cloned()).collect(), ..self.clone() }
    }

    /// As a person would type it.
    pub fn shown(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        let own = std::env::current_exe().unwrap_or_default();
        let words = self.words.iter().map(|word| {
            let word = if *word == own { "lightfoot".into() } else { word.to_string_lossy() };
            // A peer that was built by hand lies somewhere else on the next machine.
            let home = std::env::var(PEER_HOME).ok().filter(|home| !home.is_empty());
            let inside = home.and_then(|home| Some(format!("${PEER_HOME}{}", word.strip_prefix(&home)?)));
            if let Some(inside) = inside {
                return inside;
            }
            if std::env::var_os(FORMER).is_some_and(|former| former.to_string_lossy() == word) {
                return format!("${FORMER}");
            }
            // Nor does anybody else have the folder in which it ran.
            let relative = std::path::Path::new(&*word).strip_prefix(&self.folder).ok();
            let relative = relative.filter(|_| self.folder.parent().is_some()).and_then(|path| path.to_str());
            let word = relative.map_or(word.clone(), |path| path.to_owned().into());
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
            if word.chars().all(plain) && !word.is_empty() {
                word.into_owned()
            } else {
                format!("'{word}'")
            }
        });
        env.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Runs it with its output discarded; wall seconds, or what went wrong.
    ///
    /// # Errors
    /// A phrase such as `exit status 1`.
    pub fn time(&self) -> Result<f64, String> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(self.env.iter().copied()).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (finished, watched) = mpsc::channel::<()>();
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed());
        let watchdog = std::thread::spawn(move || {
            let late = watched.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
            if let (true, Some(pid)) = (late, pid) {
                // It may have ended just now.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            late
        });
        let status = child.wait().map_err(|error| error.to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        drop(finished);
        match (watchdog.join(), status.success()) {
            (Ok(true), _) => Err(format!("stopped after {} s", LIMIT.as_secs())),
            (_, true) => Ok(seconds),
            (_, false) => Err(status.to_string()),
        }
    }
}

/// A command in a race.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// What to run, or why it cannot be.
    pub line: Result<Line, String>,
    /// How often.
    pub rounds: usize,
}

/// All wall seconds of an entrant, or why there are none.
pub type Times = Result<Vec<f64>, String>;

/// Runs all entrants, interleaved; one without a line keeps its reason, one that fails stops.
pub fn race(entrants: &[Entrant]) -> Vec<Times> {
    let mut times: Vec<Times> = entrants.iter().map(|e| e.line.clone().map(|_| Vec::new())).collect();
    let rounds = entrants.iter().map(|entrant| entrant.rounds).max().unwrap_or(0);
    for round in 0..rounds {
        for (entrant, times) in entrants.iter().zip(&mut times) {
            let (Ok(line), true, Ok(so_far)) = (&entrant.line, round < entrant.rounds, times.as_mut()) else {
                continue;
            };
            match line.time() {
                Ok(seconds) => so_far.push(seconds),
                Err(reason) => *times = Err(reason),
            }
        }
    }
    times
}

/// The middle value; the mean of the middle two where there are two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The mean of ratios.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Line {
        Line { words: words.iter().map(OsString::from).collect(), env: vec![("A", "1")], folder: "/".into() }
    }

    #[test]
    fn means() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn a_line_reads_as_typed() {
        assert_eq!(line(&["sh", "-c", "exit 3"]).shown(), "A=1 sh -c 'exit 3'");
        assert_eq!(
            line(&["true"]).under(["taskset".into(), "-c".into(), "0".into()]).shown(),
            "A=1 taskset -c 0 true"
        );
        let inside = Line { folder: "/here/now".into(), ..line(&["cat", "/here/now/text", "/here/other"]) };
        assert_eq!(inside.shown(), "A=1 cat text /here/other");
    }

    #[test]
    fn each_entrant_has_its_rounds_or_its_reason() {
        let entrant = |line, rounds| Entrant { line, rounds };
        let times = race(&[
            entrant(Ok(line(&["true"])), 3),
            entrant(Ok(line(&["false"])), 3),
            entrant(Err("not installed".into()), 3),
            entrant(Ok(line(&["true"])), 1),
        ]);
        assert_eq!(times[0].as_ref().unwrap().len(), 3);
        assert!(times[1].as_ref().unwrap_err().contains("exit status"));
        assert_eq!(times[2], Err("not installed".into()));
        assert_eq!(times[3].as_ref().unwrap().len(), 1);
    }
}
