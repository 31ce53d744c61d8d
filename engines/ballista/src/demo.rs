//! A generated log of web requests as Parquet files, and queries over it.

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::SessionContext;
use std::path::Path;
use std::sync::Arc;

/// Queries whose patterns are searched by lightfoot's functions. Each has rows in one order.
pub const QUERIES: [&str; 4] = [
    "SELECT count(*) AS hits FROM logs WHERE line ~ '[0-9]{2}[02468]\\.[0-9]+ ms'",
    "SELECT regexp_replace(line, '^.*https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS host, count(*) AS hits, \
     sum(number) AS numbers FROM logs WHERE line LIKE '%https:%search%' GROUP BY host ORDER BY hits DESC, host",
    "SELECT regexp_count(line, '[0-9]+') AS numbers, count(*) AS rows FROM logs GROUP BY numbers ORDER BY numbers",
    "SELECT l.number, regexp_match(l.line, 'user=([a-z]+)')[1] AS name FROM logs AS l \
     JOIN logs AS r ON l.number = r.number + 1 WHERE l.line ~ 'user=[a-c]' AND r.line !~ 'user=[a-m]' \
     ORDER BY l.number LIMIT 50",
];

/// Writes a log of `files` files with `rows` rows each into a folder. Rows depend on their number
/// alone.
///
/// # Errors
/// A file cannot be written.
pub async fn write_logs(folder: &Path, files: usize, rows: usize) -> Result<()> {
    let context = SessionContext::new();
    for file in 0..files {
        let numbers = file * rows..(file + 1) * rows;
        let lines: ArrayRef = Arc::new(numbers.clone().map(line).collect::<StringArray>());
        let numbers: ArrayRef = Arc::new(numbers.map(|number| number as i64).collect::<Int64Array>());
        let batch = RecordBatch::try_from_iter([("number", numbers), ("line", lines)])?;
        let path = folder.join(format!("{file:04}.parquet")).display().to_string();
        let options = DataFrameWriteOptions::new().with_single_file_output(true);
        context.read_batch(batch)?.write_parquet(&path, options, None).await?;
    }
    Ok(())
}

/// One row of the log; every ninth is null.
fn line(number: usize) -> Option<String> {
    // SplitMix64 of the number.
    let mut bits = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    if bits.is_multiple_of(9) {
        return None;
    }
    let pick = |shift: u32, of: &[&'static str]| of[(bits >> shift) as usize % of.len()];
    let host = pick(8, &["www.example.org", "example.com", "köln.example.net", "a.b.example.io"]);
    let scheme = pick(12, &["http", "https"]);
    let path = pick(16, &["search?q=lamp", "index.html", "a/b/c.css", "search?q=%C3%A9", ""]);
    let user = pick(20, &["ann", "bert", "carla", "dirk", "nina", "omar", "zoë"]);
    let (millis, micros) = (bits >> 24 & 1023, bits >> 34 & 1023);
    Some(format!("{number} user={user} GET {scheme}://{host}/{path} {millis}.{micros} ms"))
}
