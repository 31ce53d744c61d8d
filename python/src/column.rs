//! What a pattern finds in the rows of a column that was lent, as columns.

use crate::arrow::{ChunkError, Layout, Lent, StringType};
use crate::export::{Chunk, Column, Kind, Values};
use lightfoot_pattern::column::{Bitmap, ColumnRegex, Occurrences, StringColumn};

/// The rows that match.
pub(crate) fn contains(regex: &ColumnRegex, lent: &Lent) -> Result<Column, ChunkError> {
    each(lent, Kind::Bool, |column| Ok(Values::Bits(regex.scan(column).words().to_vec())))
}

/// The number of rows that match.
pub(crate) fn count_rows(regex: &ColumnRegex, lent: &Lent) -> Result<usize, ChunkError> {
    (0..lent.chunks()).map(|chunk| lent.with_chunk(chunk, |column| regex.count(column))).sum()
}

/// The number of matches in each row.
pub(crate) fn count(regex: &ColumnRegex, lent: &Lent) -> Result<Column, ChunkError> {
    each(lent, Kind::UInt32, |column| Ok(Values::UInt32(regex.match_counts(column))))
}

/// Where the first match of each row starts, in bytes; null where there is none.
pub(crate) fn find(regex: &ColumnRegex, lent: &Lent) -> Result<Column, ChunkError> {
    let mut chunks = Vec::with_capacity(lent.chunks());
    for chunk in 0..lent.chunks() {
        let spans = lent.with_chunk(chunk, |column| regex.first_spans(column))?;
        let mut valid = Bitmap::zeros(spans.len());
        let found = spans.iter().enumerate().map(|(row, span)| {
            valid.set(row, span.is_some());
            span.as_ref().map_or(0, |span| span.start as i64)
        });
        let values = Values::Int64(found.collect());
        chunks.push(Chunk { rows: spans.len(), values, valid: Some(valid.words().to_vec()) });
    }
    Ok(Column::new(Kind::Int64, chunks))
}

/// What a group holds in the first match of each row.
pub(crate) fn extract(
    regex: &ColumnRegex,
    group: usize,
    lent: &Lent,
    is_text: bool,
) -> Result<Column, ChunkError> {
    strings(lent, is_text, |column| regex.extract(column, group).map_err(ChunkError::Column))
}

/// The rows with matches replaced.
pub(crate) fn replace(
    regex: &ColumnRegex,
    replacement: &[u8],
    occurrences: Occurrences,
    lent: &Lent,
    is_text: bool,
) -> Result<Column, ChunkError> {
    strings(lent, is_text, |column| Ok(regex.replace(column, replacement, occurrences)))
}

/// Chunks of values whose rows are null where the column's are.
fn each(
    lent: &Lent,
    kind: Kind,
    work: impl Fn(&lightfoot_pattern::column::Column<'_>) -> Result<Values, ChunkError>,
) -> Result<Column, ChunkError> {
    let mut chunks = Vec::with_capacity(lent.chunks());
    for chunk in 0..lent.chunks() {
        let (rows, values) = lent.with_chunk(chunk, |column| (column.len(), work(column)))?;
        let valid = lent.validity(chunk).map(|(bits, first)| shifted(bits, first, rows));
        chunks.push(Chunk { rows, values: values?, valid });
    }
    Ok(Column::new(kind, chunks))
}

/// The bits of `rows` rows from bit `first` on, as words.
fn shifted(bits: &[u8], first: usize, rows: usize) -> Vec<u64> {
    let mut valid = Bitmap::zeros(rows);
    if first.is_multiple_of(8) {
        let mut words: Vec<u64> = bits[first / 8..]
            .chunks(8)
            .map(|bytes| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
            .collect();
        if let (Some(last), 1..) = (words.last_mut(), rows % 64) {
            *last &= (1 << (rows % 64)) - 1;
        }
        return words;
    }
    for row in 0..rows {
        let at = first + row;
        valid.set(row, bits[at / 8] >> (at % 8) & 1 == 1);
    }
    valid.words().to_vec()
}

/// Chunks of strings. Offsets have the column's width; views become small offsets where they fit.
fn strings(
    lent: &Lent,
    is_text: bool,
    work: impl Fn(&lightfoot_pattern::column::Column<'_>) -> Result<StringColumn, ChunkError>,
) -> Result<Column, ChunkError> {
    let made: Vec<StringColumn> =
        (0..lent.chunks()).map(|chunk| lent.with_chunk(chunk, &work)?).collect::<Result<_, _>>()?;
    // All chunks of a column have one type.
    let is_large = lent.kind.layout == Layout::LargeOffsets
        || made.iter().any(|column| column.values().len() > i32::MAX as usize);
    let kind = string_kind(StringType { layout: Layout::Offsets, is_text }, is_large);
    let chunks = made.into_iter().map(|column| string_chunk(column, is_large)).collect::<Result<_, _>>()?;
    Ok(Column::new(kind, chunks))
}

fn string_kind(kind: StringType, is_large: bool) -> Kind {
    match (kind.is_text, is_large) {
        (true, false) => Kind::String,
        (true, true) => Kind::LargeString,
        (false, false) => Kind::Binary,
        (false, true) => Kind::LargeBinary,
    }
}

fn string_chunk(column: StringColumn, is_large: bool) -> Result<Chunk, ChunkError> {
    let rows = column.len();
    let small = if is_large { None } else { Some(column.small_offsets()?) };
    let (values, offsets, valid) = column.into_parts();
    let values = match small {
        Some(small) => Values::Strings(values, small),
        None => Values::LargeStrings(values, offsets),
    };
    Ok(Chunk { rows, values, valid: Some(valid.words().to_vec()) })
}

/// A binary column of strings that were found in a text.
pub(crate) fn binaries(column: StringColumn) -> Result<Column, ChunkError> {
    let is_large = column.values().len() > i32::MAX as usize;
    let kind = string_kind(StringType { layout: Layout::Offsets, is_text: false }, is_large);
    Ok(Column::new(kind, vec![string_chunk(column, is_large)?]))
}
