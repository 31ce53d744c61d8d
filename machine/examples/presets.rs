//! Prints a line for each preset; with a name, its description as TOML:
//! `cargo run --example presets [NAME]`.

use lightfoot_machine::{Error, Machine, PRESETS};

fn main() -> Result<(), Error> {
    if let Some(name) = std::env::args().nth(1) {
        print!("{}", Machine::preset(&name)?.to_toml());
        return Ok(());
    }
    for preset in PRESETS {
        let machine = preset.machine();
        let levels: Vec<String> = machine
            .caches
            .iter()
            .map(|cache| format!("{} {}K", cache.name(), cache.size_bytes >> 10))
            .collect();
        println!("{:<16} {:<44} {}", preset.name, levels.join(", "), preset.description);
    }
    Ok(())
}
