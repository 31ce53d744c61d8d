//! Runs the search: one thread or several take haystacks, and the results of one file stay
//! together.

use super::arguments::Output;
use super::explain;
use super::matching::Matching;
use super::results::Results;
use super::say;
use super::settings::Settings;
use super::stdout::Stdout;
use super::walk::{self, Haystack};
use super::worker::Worker;
use super::writer::Writer;
use anyhow::Result;
use grep_printer::Stats;
use ignore::WalkState;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// Searches, and returns whether anything matched.
///
/// # Errors
/// When a pattern, a glob or a preprocessor cannot be built. Errors of a file are reported, and the
/// search continues.
pub(super) fn run(settings: &Settings) -> Result<bool> {
    let start = Instant::now();
    let matching = Matching::new(settings)?;
    if settings.arguments.debug {
        say::warning(explain::sentence(&matching));
    }
    if !settings.can_match() {
        return Ok(false);
    }
    if settings.threads == 1 {
        one_thread(settings, matching, start)
    } else {
        many_threads(settings, matching, start)
    }
}

fn one_thread(settings: &Settings, matching: Matching, start: Instant) -> Result<bool> {
    let haystacks = match walk::alone(settings) {
        Some(haystack) => Box::new(std::iter::once(haystack)),
        None => walked(settings)?,
    };
    let mut worker = Worker::new(settings, matching, Writer::Out(Stdout::new(settings)))?;
    let (mut matched, mut searched) = (false, false);
    let mut stats = settings.stats.then(Stats::new);
    for haystack in haystacks {
        searched = true;
        match worker.search(&haystack) {
            Ok(found) => {
                matched |= found.any;
                add(stats.as_mut(), found.stats.as_ref());
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => say::error(format_args!("{}: {error}", haystack.path.display())),
        }
        if matched && settings.quit_after_match {
            break;
        }
    }
    nothing_searched(settings, searched);
    written(worker.writer().flush())?;
    if let Some(stats) = stats {
        // A closed pipe is no error.
        let _ = print_stats(settings, &stats, start, worker.writer());
    }
    Ok(matched)
}

/// What the last write says. A closed pipe is no error.
fn written(flushed: io::Result<()>) -> Result<()> {
    match flushed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn walked(settings: &Settings) -> Result<Box<dyn Iterator<Item = Haystack> + '_>> {
    let entries = walk::builder(settings)?.build();
    let haystacks = entries.filter_map(|entry| Haystack::new(entry, settings.implicit_path));
    Ok(walk::sorted(haystacks, settings.sort()))
}

fn many_threads(settings: &Settings, matching: Matching, start: Instant) -> Result<bool> {
    let results = Results::new(settings);
    let matched = AtomicBool::new(false);
    let searched = AtomicBool::new(false);
    let stats = Mutex::new(settings.stats.then(Stats::new));
    let collected = || Writer::Collected(results.writer());
    let worker = Worker::new(settings, matching, collected())?;
    walk::builder(settings)?.build_parallel().run(|| {
        let (matched, searched, stats) = (&matched, &searched, &stats);
        let mut worker = worker.another(settings, collected());
        Box::new(move |entry| {
            let Some(haystack) = Haystack::new(entry, settings.implicit_path) else {
                return WalkState::Continue;
            };
            searched.store(true, Ordering::Relaxed);
            let printed = match worker.search(&haystack) {
                Ok(found) => {
                    matched.fetch_or(found.any, Ordering::Relaxed);
                    if found.stats.is_some() {
                        add(lock(stats).as_mut(), found.stats.as_ref());
                    }
                    worker.writer().finish()
                }
                Err(error) => worker.writer().give_up().and(Err(error)),
            };
            match printed {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return WalkState::Quit,
                Err(error) => say::error(format_args!("{}: {error}", haystack.path.display())),
                Ok(()) => (),
            }
            if settings.quit_after_match && matched.load(Ordering::Relaxed) {
                WalkState::Quit
            } else {
                WalkState::Continue
            }
        })
    });
    drop(worker);
    nothing_searched(settings, searched.load(Ordering::Relaxed));
    let mut out = results.into_out();
    written(out.flush())?;
    if let Some(stats) = lock(&stats).as_ref() {
        // A closed pipe is no error.
        let _ = print_stats(settings, stats, start, &mut out);
    }
    Ok(matched.load(Ordering::Relaxed))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn add(sum: Option<&mut Stats>, found: Option<&Stats>) {
    if let (Some(sum), Some(found)) = (sum, found) {
        *sum += found;
    }
}

fn nothing_searched(settings: &Settings, searched: bool) {
    if settings.implicit_path && !searched {
        say::error(
            "no files were searched: ignore files, hidden files, globs or types may have excluded them all; \
             --files lists what would be searched, -uu lifts most rules",
        );
    }
}

fn print_stats(settings: &Settings, stats: &Stats, start: Instant, out: &mut dyn Write) -> io::Result<()> {
    let elapsed = start.elapsed();
    if settings.output == Output::Json {
        let total = serde_json::json!({
            "secs": elapsed.as_secs(),
            "nanos": elapsed.subsec_nanos(),
            "human": format!("{:0.6}s", elapsed.as_secs_f64()),
        });
        let summary =
            serde_json::json!({ "data": { "elapsed_total": total, "stats": stats }, "type": "summary" });
        return writeln!(out, "{summary}");
    }
    writeln!(out)?;
    for (number, what) in [
        (stats.matches(), "matches"),
        (stats.matched_lines(), "matched lines"),
        (stats.searches_with_match(), "files contained matches"),
        (stats.searches(), "files searched"),
        (stats.bytes_printed(), "bytes printed"),
        (stats.bytes_searched(), "bytes searched"),
    ] {
        writeln!(out, "{number} {what}")?;
    }
    writeln!(out, "{:0.6} seconds spent searching", stats.elapsed().as_secs_f64())?;
    writeln!(out, "{:0.6} seconds total", elapsed.as_secs_f64())
}
