//! `lightfoot doctor`: what this machine can measure, what it cannot, why, and the fix.

use crate::cli::{Doctor, DoctorFormat};
use crate::engine;
use crate::report::output::print;
use anyhow::Result;

pub(super) fn run(options: &Doctor) -> Result<u8> {
    let rows = engine::abilities();
    let text = match options.format {
        DoctorFormat::Json => serde_json::to_string_pretty(&rows)? + "\n",
        DoctorFormat::Text => String::new(),
    };
    print(&text)?;
    Ok(0)
}
