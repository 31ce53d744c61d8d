//! Columns: the rows that match, of a column on the card and of the same column on the processor.

use crate::composed::{compose, frozen};
use crate::{median, processor, Arguments};
use lightfoot_pattern::column::{Column, ColumnOnCard, ColumnRegex, RegexOnCard};
use lightfoot_pattern::kernel::cuda::{Cuda, CudaError};
use std::sync::Arc;
use std::time::Instant;

const MOST_BYTES: usize = 1 << 30;
const COMPOSED: usize = 64 << 20;
const ROUNDS: usize = 7;
/// Lines that are joined to one row.
const LINES: [usize; 2] = [1, 8];

/// Entries of the frozen list.
const NAMES: &[&str] =
    &["literal", "ing", "ipv4", "email", "date", "hex", "uri", "identifier call", "number"];

/// Prints the table.
pub(crate) fn table(cuda: &Arc<Cuda>, arguments: &Arguments) -> Result<(), CudaError> {
    println!("\n## Columns\n");
    println!(
        "Rows that match, of a column of at most 1 GiB of code, rows of one and of eight lines, in GB/s of values: by the card's own clock, with the copy of the \
         bits, and by one thread of the processor.\n"
    );
    println!("| pattern | bytes a row | rows | matching | card | with the bits | one thread |\n|---|---:|---:|---:|---:|---:|---:|");
    let text = compose("code", COMPOSED.min(arguments.bytes));
    for lines in LINES {
        let (values, offsets) = column(&text, lines, arguments.bytes.min(MOST_BYTES));
        let column = Column::with_large_offsets(&values, &offsets).expect("offsets ascend");
        let started = Instant::now();
        let on_card = ColumnOnCard::upload(cuda, &column)?;
        let uploaded = values.len() as f64 / started.elapsed().as_secs_f64() / 1e9;
        let chosen = |name: &String| NAMES.contains(&name.as_str()) && name.contains(&arguments.part);
        for entry in frozen().iter().filter(|entry| chosen(&entry.name)) {
            let regex = ColumnRegex::new(&entry.pattern).expect("the pattern parses");
            let program = match RegexOnCard::new(cuda, &regex) {
                Ok(program) => program,
                Err(error) => {
                    println!("| {} | {error} | | | | | |", entry.name);
                    continue;
                }
            };
            let started = Instant::now();
            let expected = regex.scan(&column);
            let one = started.elapsed().as_secs_f64();
            let (mut card, mut whole) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let started = Instant::now();
                let (rows, seconds) = program.scan_timed(&on_card)?;
                whole.push(started.elapsed().as_secs_f64());
                card.push(seconds);
                assert!(rows == expected, "{}: the card's rows and the processor's", entry.name);
            }
            let rate = |seconds: f64| values.len() as f64 / seconds / 1e9;
            println!(
                "| {} | {:.0} | {} | {} | {:.0} | {:.0} | {:.2} |",
                entry.name,
                values.len() as f64 / column.len() as f64,
                column.len(),
                expected.count_ones(),
                rate(median(card)),
                rate(median(whole)),
                rate(one)
            );
        }
        println!("\nUploaded at {uploaded:.1} GB/s, offsets not counted ({}).\n", processor::model());
    }
    Ok(())
}

/// So many lines to a row, without the last one's end.
fn column(text: &[u8], lines: usize, bytes: usize) -> (Vec<u8>, Vec<i64>) {
    let (mut values, mut offsets) = (Vec::with_capacity(bytes), vec![0]);
    let rows: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    for row in rows.chunks(lines).cycle() {
        row.iter().for_each(|line| values.extend_from_slice(line));
        values.pop();
        if values.len() > bytes {
            break;
        }
        offsets.push(values.len() as i64);
    }
    values.truncate(offsets.last().map_or(0, |&end: &i64| end as usize));
    (values, offsets)
}
