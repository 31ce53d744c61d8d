//! Draws a table of ratios as bars:
//! `cargo run -p lightfoot-plot --example ratios < TABLE > bars.svg`.
//!
//! The first line of the table names the series, every other line is a label and one number for
//! each series; `-` stands for a number that was not measured. Words are apart by white space:
//!
//! ```text
//!            plain  blocked
//! laptop     1.0    3.4
//! server     1.0    -
//! ```

use lightfoot_plot::bars::{bars, Bars, Group};
use std::error::Error;
use std::io::read_to_string;

fn group(line: &str) -> Result<Group, Box<dyn Error>> {
    let mut words = line.split_whitespace();
    let label = words.next().ok_or("a line without a label")?.to_owned();
    let number = |word: &str| (word != "-").then(|| word.parse()).transpose();
    let values = words.map(number).collect::<Result<Vec<Option<f64>>, _>>()?;
    Ok(Group { label, values })
}

fn main() -> Result<(), Box<dyn Error>> {
    let table = read_to_string(std::io::stdin())?;
    let mut lines = table.lines().filter(|line| !line.trim().is_empty());
    let heading = lines.next().ok_or("the table is empty")?;
    let series: Vec<String> = heading.split_whitespace().map(str::to_owned).collect();
    let groups = lines.map(group).collect::<Result<Vec<_>, _>>()?;
    if let Some(uneven) = groups.iter().find(|group| group.values.len() != series.len()) {
        return Err(format!("{} has no number for each of the series", uneven.label).into());
    }
    print!("{}", bars(&Bars { title: "Ratios".into(), series, groups }));
    Ok(())
}
