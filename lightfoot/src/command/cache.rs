//! `lightfoot cache`: misses in a simulated hierarchy (ATOM's second tool).

use super::measure;
use crate::cli::Cache;
use anyhow::Result;
use std::ffi::OsString;

pub(super) fn run(options: &Cache, all: &[OsString]) -> Result<u8> {
    measure::prepare(&options.run, all)?;
    anyhow::bail!("this build has no simulator")
}
