//! `lightfoot study`: runs one study, or all of them, or lists them.

use crate::cli::Study;
use crate::exit::{Failure, USAGE};
use crate::report::output::print;
use crate::report::terminal::beside;
use crate::study::{run_all, STUDIES};
use anyhow::Result;

pub(super) fn run(options: &Study) -> Result<u8> {
    if options.list {
        print(&list())?;
        return Ok(0);
    }
    let told = crate::study::Options::new(options)?;
    let Some(name) = &options.name else {
        run_all(&told)?.show()?;
        return Ok(0);
    };
    match STUDIES.iter().find(|study| study.name == name) {
        Some(study) => {
            (study.run)(&told)?.show()?;
            Ok(0)
        }
        None => {
            let known: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
            let sentence = format!("there is no study {name}: the studies are {}", known.join(", "));
            Err(Failure { status: USAGE, sentence }.into())
        }
    }
}

fn list() -> String {
    let width = STUDIES.iter().map(|study| study.name.len()).max().unwrap_or(0);
    let lines = STUDIES.iter().map(|study| beside(&format!("  {:<width$}  ", study.name), study.about));
    format!(
        "Studies (study [NAME] [--quick] [-o DIR]; without a name all of them):\n{}",
        lines.collect::<String>()
    )
}
