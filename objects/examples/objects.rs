//! Prints which data of a program misses, by object and by field:
//! `cargo run --release -p lightfoot-objects --example objects -- PROGRAM ARGUMENTS`.

use instrument::tool::run_observed;
use instrument::{Command, Options};
use lightfoot_objects::{Found, ObjectMisses, ObjectTool};
use machine::Machine;
use simulate::{plan_levels, Modelled, WriteBacks};

fn first_level(misses: &ObjectMisses) -> u64 {
    misses.caches[0].loads + misses.caches[0].stores
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or("name a program to run")?;
    let command = Command { program, arguments: words.collect() };
    let levels = Modelled::of(&Machine::host())?.ok_or("the host has no data cache that is known")?.levels;
    let stream = plan_levels(&levels, WriteBacks::Ignored).stream;
    let mut tool = ObjectTool::new(&levels, stream, 8).with_types();
    let (instrumenter, options) = (tool.instrumenter(), Options { stream, ..Options::default() });
    run_observed(&command, &options, instrumenter, &mut tool, None)?;
    let Found { mut objects, .. } = tool.into_found();
    objects.objects.sort_by_key(|object| std::cmp::Reverse(first_level(&object.misses)));
    for object in objects.objects.iter().take(10) {
        let of_type = object.of_type.as_ref();
        let name = of_type.map_or("unknown", |(of, _)| objects.types[*of as usize].layout.name.as_str());
        let way = of_type.map_or("", |(_, way)| way.as_str());
        let kind = object.kind.name();
        println!("{:>10} {kind} {}: type {name} {way}", first_level(&object.misses), object.name);
    }
    for found in &objects.types {
        for (field, misses) in found.layout.fields.iter().zip(&found.fields) {
            println!("{:>10} {}.{}", first_level(misses), found.layout.name, field.name);
        }
    }
    Ok(())
}
