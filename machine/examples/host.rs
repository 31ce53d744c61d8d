//! Prints this machine, and for each cache how its size is known: `cargo run --example host`.

use lightfoot_machine::{abilities, Machine};

fn main() {
    let machine = Machine::host();
    println!("{}", machine.description);
    for cache in &machine.caches {
        let name = cache.name();
        let source = machine.source_of(&format!("cache.{name}.size_bytes"));
        let (origin, note) = source.map_or(("unknown".into(), ""), |source| {
            (format!("{:?}", source.origin).to_lowercase(), source.note.as_str())
        });
        let (kilobytes, ways) = (cache.size_bytes >> 10, cache.ways);
        println!(
            "{name:<4} {kilobytes:>8} KiB {ways:>3} ways of {} bytes  {origin}: {note}",
            cache.line_bytes
        );
    }
    println!("\nwhat it can measure:");
    for ability in abilities() {
        println!("{:<8} {}: {}", format!("{:?}", ability.state).to_lowercase(), ability.name, ability.reason);
    }
}
