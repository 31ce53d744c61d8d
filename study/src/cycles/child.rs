//! The program that is measured: one variant, a pass that warms the caches up, then timed rounds.
//!
//! It runs as `lightfoot kernel`, a process of its own. The rounds alone are inside the region
//! `kernel`, so the same command is timed natively and counted by the engine.

use anyhow::Result;
use contenders::{variants, Variant};
use present::exit::{Failure, USAGE};
use std::hint::black_box;
use std::time::Instant;

/// The region around the passes of a round.
pub(super) const REGION: &str = "kernel";

/// What the program is asked for.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The variant, as the study's table names it.
    pub name: String,
    /// Passes of a round.
    pub passes: usize,
    /// Rounds.
    pub rounds: usize,
}

/// Runs the variant and prints the nanoseconds of each round, one in a line.
///
/// # Errors
/// When there is no such variant, or standard output cannot be written to.
pub fn kernel(options: &Kernel) -> Result<()> {
    let variant = named(&options.name)?;
    let mut pass = variant.prepare();
    black_box(pass());
    let mut lines = String::new();
    for _ in 0..options.rounds {
        let nanoseconds = round(&mut *pass, options.passes);
        lines += &format!("{nanoseconds}\n");
    }
    present::output::print(&lines)?;
    Ok(())
}

/// The nanoseconds of so many passes.
fn round(pass: &mut dyn FnMut() -> u64, passes: usize) -> u128 {
    let start = Instant::now();
    region::region_begin!("kernel");
    for _ in 0..passes {
        black_box(pass());
    }
    region::region_end!("kernel");
    start.elapsed().as_nanos()
}

fn named(name: &str) -> Result<Variant> {
    variants().into_iter().find(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<String> = variants().into_iter().map(|variant| variant.name).collect();
        let family = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
        let mut relatives: Vec<String> =
            known.iter().filter(|known| family(known) == family(name)).cloned().collect();
        // Of another family none is near; a name of each family shows what there is.
        if relatives.is_empty() {
            relatives = known;
            relatives.dedup_by_key(|name| family(name));
        }
        let sentence = format!("there is no kernel {name}; there are {}", relatives.join("; "));
        Failure { status: USAGE, sentence }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_unknown_is_refused_with_those_that_there_are() {
        let said = |name: &str| {
            let options = Kernel { name: name.into(), passes: 1, rounds: 1 };
            kernel(&options).unwrap_err().to_string()
        };
        let sort = said("sort:bogo");
        assert!(sort.contains("no kernel sort:bogo") && sort.contains("sort:radix"), "{sort}");
        assert!(!sort.contains("product-order"), "{sort}");
        let other = said("nosuch");
        assert!(other.contains("product-order:") && other.len() < 500, "{other}");
    }
}
