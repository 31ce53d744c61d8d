//! Rows that stand alone: threads and calls are counted in ways that go with no others.

use crate::cli::{By, Run, Shape};
use anyhow::{bail, Result};

/// Refuses what does not go together with such rows.
pub(super) fn check_rows(run: &Run) -> Result<()> {
    let alone =
        run.region.is_none() && !run.format.shows_calls() && run.by.iter().all(|by| *by == By::Thread);
    if run.by.contains(&By::Thread) && !alone {
        bail!("--by thread stands alone: leave out other rows, --region and formats with calls");
    }
    let is_table = matches!(run.format, Shape::Text | Shape::Json | Shape::Csv);
    let alone = run.by == [By::Call] && !run.follow_children && is_table;
    if run.by.contains(&By::Call) && !alone {
        bail!("--by call stands alone, for the program itself: leave out other rows and --follow-children, and use text, json or csv");
    }
    Ok(())
}
