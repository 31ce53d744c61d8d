//! An HTML page of each benchmark: the page of `lightfoot cache --region benchmark`.
//!
//! A page follows calls, which the engine does in the program alone. So the benchmark runs once
//! more in the program itself and not in a copy of it, and its counts there may differ a little.

use super::programs::{Kind, Program};
use crate::cli::Bench;
use anyhow::{bail, Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes the pages of all benchmarks to a folder.
///
/// # Errors
/// When a page cannot be made.
pub(super) fn write(
    folder: &Path,
    listed: &[(&Program, Vec<String>)],
    options: &Bench,
    machine: Option<&Path>,
) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}: name a folder", folder.display()))?;
    let folder = folder.canonicalize()?;
    for (program, names) in listed {
        if program.kind == Kind::Regions {
            bail!("{} has no pages: run lightfoot cache --region NAME --format html", program.name);
        }
        for name in names {
            page(&folder.join(file(&program.name, name)), (program, name), options, machine)?;
        }
    }
    Ok(())
}

fn page(
    file: &Path,
    (program, name): (&Program, &str),
    options: &Bench,
    machine: Option<&Path>,
) -> Result<()> {
    let this = std::env::current_exe().context("cannot find this executable")?;
    let mut command = Command::new(this);
    let machine = machine.unwrap_or(Path::new(&options.machine));
    command.args(["cache", "--region", "benchmark", "--format", "html", "--machine"]).arg(machine);
    if let Some(processor) = &options.virtual_cpu {
        command.args(["--virtual-cpu", processor]);
    }
    command.arg("-o").arg(file).arg("--").arg(&program.file).args(["--here", "--exact", name]);
    command.args(options.cold.then_some("--cold"));
    program.place(&mut command);
    let ran = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).status();
    let ran = ran.with_context(|| format!("cannot run {}", program.file.display()))?;
    if !ran.success() {
        bail!("benchmark {name} of {} has no page: see above", program.name);
    }
    Ok(())
}

/// The name of a benchmark's page.
fn file(program: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let short: String = format!("{program}-{name}").chars().map(plain).take(180).collect();
    short + ".html"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_names_that_files_may_have() {
        assert_eq!(file("sorting", "text::split/long"), "sorting-text--split-long.html");
        assert!(file("a", &"b/".repeat(400)).len() < 200);
    }
}
