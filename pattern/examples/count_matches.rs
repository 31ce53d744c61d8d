//! How many lines of a file match a pattern, and what was chosen to find out.
//!
//! `cargo run --release -p lightfoot-pattern --example count_matches -- 'error|warning' FILE`

use lightfoot_pattern::Regex;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pattern = arguments.next().unwrap_or_else(|| "[a-z]+ing".to_owned());
    let text = match arguments.next() {
        Some(path) => std::fs::read(path)?,
        // Without a file: sixteen megabytes of lines, every third of which matches the default.
        None => b"they were dancing\nsong and dance\n42 bears\n".repeat(400_000),
    };

    let regex = Regex::new(&pattern)?;
    print!("{}", regex.explain());

    let start = Instant::now();
    let count = regex.count_lines(&text);
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} lines, {:.2} GB/s", text.len() as f64 / seconds / 1e9);
    Ok(())
}
