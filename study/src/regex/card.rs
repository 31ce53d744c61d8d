//! Searches the families on a graphics card: text that is already on the card, and text that comes
//! from the host. The rates of plain copies in the same run stand beside them.
//!
//! Searches of resident text are timed by the card's clock, and the median of the rounds counts.
//! Searches from the host are timed by the host's clock and copy the text each time, from pinned
//! memory and from pageable memory. A first match includes the compilation. The card must count the
//! lines that the processor counts. Without a card, the page has one line that says so.

use super::family::FAMILIES;
use crate::options::Effort;
use crate::race::median;
use pattern::kernel::cuda::{Cuda, CudaError, GpuText, HostText, PinnedText};
use pattern::Regex;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// What a card does with a family.
#[derive(Debug, Serialize)]
struct Row {
    family: &'static str,
    lines: u64,
    /// Gigabytes per second.
    resident: f64,
    from_pinned: f64,
    from_pageable: f64,
    first_match_seconds: f64,
}

/// What was measured on a card.
#[derive(Debug, Serialize)]
struct Measured {
    card: String,
    bytes: usize,
    copy_from_pinned: f64,
    copy_within: f64,
    rows: Vec<Row>,
    missing: Vec<String>,
}

/// Figures, or why there are none.
#[derive(Debug, Serialize)]
pub(super) struct OnCard {
    measured: Option<Measured>,
    not_measured: Option<String>,
}

/// Measures all families on the machine's card.
pub(super) fn measure(text: &[u8], effort: Effort) -> OnCard {
    match Cuda::shared().and_then(|cuda| all(&cuda, text, effort)) {
        Ok(measured) => OnCard { measured: Some(measured), not_measured: None },
        Err(error) => OnCard { measured: None, not_measured: Some(error.to_string()) },
    }
}

fn all(cuda: &Arc<Cuda>, text: &[u8], effort: Effort) -> Result<Measured, CudaError> {
    let (bytes, rounds) = match effort {
        Effort::Quick => (256 << 20, 3),
        Effort::Full => (2 << 30, 7),
    };
    let rates = cuda.copy_rates(bytes)?;
    // The text is repeated until it fills `bytes`. It stays in pinned memory, from which a card
    // copies without an intermediate buffer.
    let mut pinned = PinnedText::new(cuda, bytes)?;
    for part in pinned.bytes_mut()?[..bytes].chunks_mut(text.len().max(1)) {
        part.copy_from_slice(&text[..part.len()]);
    }
    let resident = GpuText::upload(cuda, pinned.bytes(), b'\n')?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for family in FAMILIES {
        present::tell!("lightfoot: {} on the card", family.name);
        let Ok(regex) = Regex::new(family.pattern) else { continue };
        match row(family.name, &regex, &resident, &pinned, rounds) {
            Ok(row) => rows.push(row),
            // A family that fails on the card is named on the page, and the others are still
            // measured.
            Err(error) => missing.push(format!("{}: {error}", family.name)),
        }
    }
    let card = cuda.card().name.clone();
    Ok(Measured {
        card,
        bytes,
        copy_from_pinned: rates.from_pinned,
        copy_within: rates.within,
        rows,
        missing,
    })
}

fn row(
    family: &'static str,
    regex: &Regex,
    resident: &GpuText,
    pinned: &PinnedText,
    rounds: usize,
) -> Result<Row, String> {
    // The first match includes the compilation for the card, as a user waits for both.
    let started = Instant::now();
    let program = regex.on_card().map_err(|error| error.to_string())?;
    let lines = program.count_lines(resident).map_err(|error| error.to_string())?;
    let first_match_seconds = started.elapsed().as_secs_f64();
    let here = regex.count_lines(pinned.bytes());
    // A wrong count makes the times worthless.
    if here != lines {
        return Err(format!("counts {lines} lines where the processor counts {here}"));
    }
    let rate = |seconds: &dyn Fn() -> Result<f64, CudaError>| -> Result<f64, String> {
        let times: Result<Vec<f64>, CudaError> = (0..rounds).map(|_| seconds()).collect();
        let times = times.map_err(|error| error.to_string())?;
        Ok(resident.len() as f64 / median(&times).unwrap_or(f64::NAN) / 1e9)
    };
    // These searches are timed by this machine's clock, because the copy is a part of them.
    let from_host = |text: HostText<'_>| {
        let start = Instant::now();
        program.count_lines_from_host(text)?;
        Ok(start.elapsed().as_secs_f64())
    };
    Ok(Row {
        family,
        lines,
        resident: rate(&|| Ok(program.count_lines_timed(resident)?.1))?,
        from_pinned: rate(&|| from_host(HostText::Pinned(pinned)))?,
        from_pageable: rate(&|| from_host(HostText::Pageable(pinned.bytes())))?,
        first_match_seconds,
    })
}

impl OnCard {
    /// For each family the speed of a search from pinned memory over that of copying the text.
    pub(super) fn shares_of_transfer(&self) -> Vec<f64> {
        let Some(measured) = &self.measured else { return Vec::new() };
        measured.rows.iter().map(|row| row.from_pinned / measured.copy_from_pinned).collect()
    }

    #[cfg(test)]
    pub(super) fn none() -> OnCard {
        OnCard { measured: None, not_measured: Some(String::from("no card")) }
    }

    /// The section of the page.
    pub(super) fn text(&self) -> String {
        let mut out = String::from("\n## On a graphics card\n\n");
        let Some(measured) = &self.measured else {
            let _ = writeln!(out, "Not measured: {}.", self.not_measured.as_deref().unwrap_or("no card"));
            return out;
        };
        let _ = writeln!(
            out,
            "{}, {} bytes, the corpus repeated; GB/s, medians. Copies in the same run: {:.1} GB/s from pinned memory, {:.0} GB/s within the card (read plus written).\n",
            measured.card, measured.bytes, measured.copy_from_pinned, measured.copy_within
        );
        out += "| family | lines | resident | from pinned memory | from any memory | first match, ms |\n|---|---:|---:|---:|---:|---:|\n";
        for row in &measured.rows {
            let _ = writeln!(
                out,
                "| {} | {} | {:.0} | {:.1} | {:.1} | {:.0} |",
                row.family,
                row.lines,
                row.resident,
                row.from_pinned,
                row.from_pageable,
                row.first_match_seconds * 1e3
            );
        }
        for reason in &measured.missing {
            let _ = writeln!(out, "- {reason}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_card_is_said_in_a_line() {
        let none = OnCard { measured: None, not_measured: Some(CudaError::NoCard.to_string()) };
        assert!(none.text().ends_with("\nNot measured: the CUDA driver sees no card.\n"), "{}", none.text());
    }
}
