//! `lightfoot study`: runs one study or all of them, or lists them. `lightfoot lookups`,
//! `lightfoot matches` and `lightfoot kernel`: the programs that three of the studies measure.

use crate::cli::{Kernel, Lookups, Matches, Study};
use anyhow::Result;
use present::exit::refused;
use present::output::print;
use study::{find, list, run_all, Effort, Options, STUDIES};

pub(super) fn run(options: &Study) -> Result<u8> {
    if options.list {
        print(&list(STUDIES))?;
        return Ok(0);
    }
    let folder = &options.output;
    if folder.exists() && !folder.is_dir() {
        return Err(refused(format!("{} is no folder, and a study writes several files", folder.display())));
    }
    let effort = if options.quick { Effort::Quick } else { Effort::Full };
    let study_options = Options { effort, folder: options.output.clone(), max_bytes: options.max_bytes };
    match &options.name {
        None => run_all(STUDIES, &study_options)?.show()?,
        Some(name) => (find(STUDIES, name)?.run)(&study_options)?.show()?,
    }
    Ok(0)
}

pub(super) fn lookups(options: &Lookups) -> Result<u8> {
    study::lookups(&study::Lookups {
        algorithm: options.algorithm.clone(),
        items: options.items,
        block_bytes: options.block_bytes,
        lookups: options.lookups,
        trials: options.trials,
        skip: options.skip,
    })?;
    Ok(0)
}

pub(super) fn matches(options: &Matches) -> Result<u8> {
    study::matches(&study::Matches {
        engine: options.engine.clone(),
        pattern: options.pattern.clone(),
        file: options.file.clone(),
    })?;
    Ok(0)
}

pub(super) fn kernel(options: &Kernel) -> Result<u8> {
    let Kernel { name, passes, rounds } = options;
    study::kernel(&study::Kernel { name: name.clone(), passes: *passes, rounds: *rounds })?;
    Ok(0)
}
