//! x
use super::Options;
use anyhow::Result;
pub(super) fn run(_o: &Options) -> Result<()> {
    Ok(())
}
