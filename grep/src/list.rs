//! `--files` and `--type-list`: list the files that would be searched, and the known file types.

use super::settings::Settings;
use super::stdout::Stdout;
use super::walk::{self, Haystack};
use anyhow::Result;
use grep_printer::{PathPrinter, PathPrinterBuilder};
use ignore::WalkState;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use termcolor::WriteColor;

/// Prints the paths that would be searched, and returns whether there is any.
///
/// # Errors
/// When the walk cannot be built, or output cannot be written.
pub(super) fn files(settings: &Settings) -> Result<bool> {
    let printer = printer(settings).build(Stdout::new(settings));
    if settings.threads == 1 {
        let entries = walk::builder(settings)?.build();
        let haystacks = entries.filter_map(|entry| Haystack::new(entry, settings.implicit_path));
        let mut any = false;
        let paths = walk::sorted(haystacks, settings.sort()).inspect(|_| any = true);
        let paths = paths.take(if settings.quit_after_match { 1 } else { usize::MAX });
        print(printer, paths, settings.quit_after_match)?;
        return Ok(any);
    }
    several(settings, printer)
}

fn several<W: WriteColor + Send>(settings: &Settings, printer: PathPrinter<W>) -> Result<bool> {
    let any = AtomicBool::new(false);
    let (send, receive) = mpsc::channel();
    let walk = walk::builder(settings)?.build_parallel();
    std::thread::scope(|scope| {
        let printing = scope.spawn(move || print(printer, receive.into_iter(), settings.quit_after_match));
        walk.run(|| {
            let (send, any) = (send.clone(), &any);
            Box::new(move |entry| match Haystack::new(entry, settings.implicit_path) {
                None => WalkState::Continue,
                Some(haystack) => {
                    any.store(true, Ordering::Relaxed);
                    let sent = send.send(haystack).is_ok();
                    if sent && !settings.quit_after_match {
                        WalkState::Continue
                    } else {
                        WalkState::Quit
                    }
                }
            })
        });
        drop(send);
        printing.join().unwrap_or(Ok(()))
    })?;
    Ok(any.load(Ordering::Relaxed))
}

fn print<W: WriteColor>(
    mut printer: PathPrinter<W>,
    haystacks: impl Iterator<Item = Haystack>,
    quiet: bool,
) -> io::Result<()> {
    for haystack in haystacks {
        if quiet {
            continue;
        }
        match printer.write(&haystack.path) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other?,
        }
    }
    Ok(())
}

fn printer(settings: &Settings) -> PathPrinterBuilder {
    let mut builder = PathPrinterBuilder::new();
    builder
        .color_specs(settings.colors.clone())
        .hyperlink(settings.hyperlink.clone())
        .separator(settings.arguments.path_separator)
        .terminator(settings.path_terminator.unwrap_or(b'\n'));
    builder
}

/// Prints the known types, and returns whether there is any.
///
/// # Errors
/// When a change of the types is malformed, or output cannot be written.
pub(super) fn types(settings: &Settings) -> Result<bool> {
    let types = walk::types(&settings.arguments.type_changes)?;
    let mut out = Stdout::new(settings);
    for definition in types.definitions() {
        writeln!(out, "{}: {}", definition.name(), definition.globs().join(", "))?;
    }
    out.flush()?;
    Ok(!types.definitions().is_empty())
}
