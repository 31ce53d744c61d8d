//! Columns as Arrow keeps them: which rows match, what a group holds, rows with matches replaced,
//! and which of several patterns each row matches.
//!
//! `cargo run -p lightfoot-pattern --example columns`

use lightfoot_pattern::column::{Column, ColumnRegex, ColumnRegexSet, Occurrences};

const VALUES: &[u8] = b"GET /cart?user=ann 200GET /help 404\nsee /indexPOST /pay?user=bob 500 late";
const OFFSETS: &[i32] = &[0, 22, 46, 46, 73];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // An array of arrow-rs hands out the same slices: `array.value_data()`, `array.value_offsets()`
    // and the bytes of `array.nulls()`. The third row is null.
    let column = Column::new(VALUES, OFFSETS)?.with_validity(&[0b1011], 0)?;

    // Each row is searched by itself: `$` is its end, whatever line feeds it holds.
    let late = ColumnRegex::new(r"[45]\d\d( late)?$")?;
    let rows = late.scan(&column);
    println!("{} of {} rows match: {:?}", rows.count_ones(), rows.len(), rows.ones().collect::<Vec<_>>());

    let user = ColumnRegex::new(r"user=(?<name>\w+)")?;
    let names = user.extract(&column, user.group_index("name").ok_or("no such group")?)?;
    for row in 0..names.len() {
        println!("row {row}: {:?}", names.row(row).map(String::from_utf8_lossy));
    }

    let hidden = user.replace(&column, b"user=***", Occurrences::All);
    println!("{}", String::from_utf8_lossy(hidden.values()));

    let set = ColumnRegexSet::new(&["^GET", r" 5\d\d", "/help"])?;
    for (pattern, rows) in set.scan(&column).iter().enumerate() {
        println!("pattern {pattern}: rows {:?}", rows.ones().collect::<Vec<_>>());
    }

    // What is wrong with a column is said when it is made.
    if let Err(error) = Column::new(VALUES, &[0, 22, 16]) {
        println!("{error}");
    }
    Ok(())
}
