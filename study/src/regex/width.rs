//! Programs of the families with vectors of 256 and of 512 bits, in memory.
//!
//! In this process, since a width is no flag of the command: the text is scanned for matching lines
//! by either kernel, turn by turn, and the best time counts.

use super::family::{Family, FAMILIES};
use pattern::kernel::{Kernel, Scanner};
use pattern::Regex;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// One pattern.
#[derive(Debug, Serialize)]
pub(super) struct Width {
    pub(super) family: &'static str,
    /// AVX2; `None` where this machine lacks it.
    pub(super) narrow_gb_per_s: Option<f64>,
    /// AVX-512.
    pub(super) wide_gb_per_s: Option<f64>,
}

const TURNS: usize = 5;

/// Every family that runs on bit streams.
pub(super) fn measure(text: &[u8]) -> Vec<Width> {
    FAMILIES.iter().filter_map(|family| one(family, text)).collect()
}

fn one(family: &Family, text: &[u8]) -> Option<Width> {
    let regex = Regex::new(family.pattern).ok().filter(|regex| regex.engine() == "streams")?;
    let program = regex.program()?;
    let available =
        |kernel: Kernel| kernel.is_available().then(|| Scanner::with_kernel(program, kernel)).flatten();
    let scanners = [available(Kernel::JitAvx2), available(Kernel::JitAvx512)];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        for (scanner, best) in scanners.iter().zip(&mut best) {
            let Some(scanner) = scanner else { continue };
            let started = Instant::now();
            black_box(scanner.count_lines(black_box(text)));
            *best = best.min(started.elapsed().as_secs_f64());
        }
    }
    let [narrow, wide] = best.map(|seconds| seconds.is_finite().then(|| text.len() as f64 / seconds / 1e9));
    Some(Width { family: family.name, narrow_gb_per_s: narrow, wide_gb_per_s: wide })
}
