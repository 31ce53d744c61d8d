//! Measures this machine, and prints where latency rises.

use lightfoot_measure::chase::{describe, measure};
use machine::Machine;

fn main() {
    let findings = match measure() {
        Ok(findings) => findings,
        Err(refusal) => return eprintln!("{refusal}"),
    };
    for tread in &findings.caches.treads {
        println!("{:>12} to {:>12} bytes: {:?} ns", tread.from, tread.to, tread.nanoseconds);
    }
    for riser in findings.caches.risers.iter().chain(&findings.tlbs.risers) {
        println!("rises from {} to {}: {} fit", riser.begins, riser.ends, riser.fits);
    }
    describe(&Machine::host(), &findings, "today").remarks.iter().for_each(|remark| println!("{remark}"));
}
