//! `lightfoot study`: lists the studies, or runs one.

use crate::cli::Study;
use crate::exit::{Failure, USAGE};
use crate::report::output::print;
use crate::study::STUDIES;
use anyhow::Result;

pub(super) fn run(options: &Study) -> Result<u8> {
    let Some(name) = &options.name else {
        print(&list())?;
        return Ok(0);
    };
    match STUDIES.iter().find(|study| study.name == name) {
        Some(study) => {
            (study.run)(&crate::study::Options::new(options)?)?;
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
    let lines = STUDIES.iter().map(|study| format!("  {:<width$}  {}\n", study.name, study.about));
    format!("Studies (lightfoot study NAME [--quick] [-o DIR]):\n{}", lines.collect::<String>())
}
