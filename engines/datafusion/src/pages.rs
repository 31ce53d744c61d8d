//! Pages of a sorted Parquet column by rank: which ones a range of keys needs.
//!
//! A file's page index says the least and the greatest key of each page. Where the column is
//! sorted, pages that hold keys of a range follow each other; an index of the crate
//! `lightfoot-search` over the least keys, and one over the greatest, find the first and the last
//! in two look-ups, whatever the number of pages and row groups. DataFusion compares a predicate
//! with every page of the row groups that it opens. **Leaves out** columns with nulls between keys,
//! descending order, and types other than integers of 32 and 64 bits (with dates and times).

use datafusion::common::{exec_datafusion_err, exec_err, Result};
use lightfoot_search::{Index, Key};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::basic::SortOrder;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use std::ops::{Range, RangeBounds};

/// A type of keys whose bounds a page index holds: `i32`, `i64`, `u32` and `u64`. Sealed.
#[allow(private_bounds, reason = "sealed: how bounds are read is the crate's own")]
pub trait PageKey: Key + ReadBounds {}

/// How the bounds of a type's pages are read.
trait ReadBounds: Sized {
    /// The order of a column of such keys.
    const ORDER: SortOrder;
    /// The type's name.
    const NAME: &'static str;
    /// The least and the greatest key of each page, if the column holds such keys.
    fn bounds(index: &ColumnIndexMetaData) -> Option<(Vec<Self>, Vec<Self>)>;
}

macro_rules! define_page_key {
    ($key:ty, $variant:ident, $stored:ty, $order:ident) => {
        impl PageKey for $key {}

        impl ReadBounds for $key {
            const ORDER: SortOrder = SortOrder::$order;
            const NAME: &'static str = stringify!($key);

            fn bounds(index: &ColumnIndexMetaData) -> Option<(Vec<$key>, Vec<$key>)> {
                let ColumnIndexMetaData::$variant(pages) = index else { return None };
                // Unsigned keys are stored as the signed ones of the same bits.
                let keys = |values: &[$stored]| values.iter().map(|&value| value as $key).collect();
                Some((keys(pages.min_values()), keys(pages.max_values())))
            }
        }
    };
}

define_page_key!(i32, INT32, i32, SIGNED);
define_page_key!(u32, INT32, i32, UNSIGNED);
define_page_key!(i64, INT64, i64, SIGNED);
define_page_key!(u64, INT64, i64, UNSIGNED);

/// The pages of a sorted column of a Parquet file.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use lightfoot_datafusion::SortedPages;
/// use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
/// use parquet::file::metadata::PageIndexPolicy;
///
/// let file = std::fs::File::open("hits.parquet")?;
/// let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
/// let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
/// let pages = SortedPages::<i64>::new(builder.metadata(), "EventTime")?;
/// let batches = builder.with_row_selection(pages.selection(1_373_000_000..1_373_003_600)).build()?;
/// # Ok(())
/// # }
/// ```
///
/// For a scan of DataFusion, give the selection to its file:
/// `PartitionedFile::with_extension(ParquetRowSelection::new(selection))`.
#[derive(Clone, Debug)]
pub struct SortedPages<K: PageKey> {
    least: Index<K>,
    greatest: Index<K>,
    /// The first row of each page, counted through the file, and the number of rows.
    starts: Vec<usize>,
}

impl<K: PageKey> SortedPages<K> {
    /// The pages of a column, by its path in the file's schema (`a.b` within a structure).
    ///
    /// # Errors
    /// There is no such column; it holds other keys, nulls, or keys out of ascending order; or the
    /// file has no page index or was opened without it.
    pub fn new(metadata: &ParquetMetaData, column: &str) -> Result<SortedPages<K>> {
        let schema = metadata.file_metadata().schema_descr();
        let Some(at) = schema.columns().iter().position(|found| found.path().string() == column) else {
            let names: Vec<String> = schema.columns().iter().map(|found| found.path().string()).collect();
            return exec_err!("the file has no column {column}; it has {}", names.join(", "));
        };
        let (Some(indexes), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) else {
            return exec_err!("the page index was not read: open the file with PageIndexPolicy::Required");
        };
        let is_ordered_so = schema.column(at).sort_order() == K::ORDER;
        let (mut least, mut greatest, mut starts, mut rows) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (group, properties) in metadata.row_groups().iter().enumerate() {
            let index = &indexes[group][at];
            let Some((minima, maxima)) = K::bounds(index).filter(|_| is_ordered_so) else {
                return match index {
                    ColumnIndexMetaData::NONE => {
                        exec_err!("row group {group} has no index of column {column}")
                    }
                    _ => exec_err!("column {column} holds no keys of type {}", K::NAME),
                };
            };
            if index.null_counts().is_none_or(|counts| counts.iter().any(|&count| count > 0)) {
                return exec_err!(
                    "column {column} may hold nulls in row group {group}: its pages are not sorted"
                );
            }
            least.extend(minima);
            greatest.extend(maxima);
            let pages = offsets[group][at].page_locations();
            starts.extend(pages.iter().map(|page| rows + page.first_row_index as usize));
            rows += properties.num_rows() as usize;
        }
        starts.push(rows);
        let ascends = (1..least.len()).all(|page| greatest[page - 1].compare(&least[page]).is_le());
        if !ascends {
            return exec_err!(
                "column {column} is not sorted: a page begins below the end of the one before it"
            );
        }
        let index = |keys: &[K]| Index::build(keys).map_err(|error| exec_datafusion_err!("{error}"));
        Ok(SortedPages { least: index(&least)?, greatest: index(&greatest)?, starts })
    }

    /// The pages that hold keys within bounds, counted through the file.
    pub fn pages(&self, bounds: impl RangeBounds<K>) -> Range<usize> {
        // Pages that end below the bounds, and those that do not begin above them.
        let first =
            self.greatest.range_ranks((bounds.start_bound().cloned(), std::ops::Bound::Unbounded)).start;
        let end = self.least.range_ranks((std::ops::Bound::Unbounded, bounds.end_bound().cloned())).end;
        first..end.max(first)
    }

    /// The rows of the pages that hold keys within bounds, counted through the file.
    pub fn rows(&self, bounds: impl RangeBounds<K>) -> Range<usize> {
        let pages = self.pages(bounds);
        self.starts[pages.start]..self.starts[pages.end]
    }

    /// What a reader of the whole file has to read for bounds: whole pages, whose first and last
    /// may hold keys outside the bounds.
    pub fn selection(&self, bounds: impl RangeBounds<K>) -> RowSelection {
        let rows = self.rows(bounds);
        let end = self.starts[self.starts.len() - 1];
        RowSelection::from(vec![
            RowSelector::skip(rows.start),
            RowSelector::select(rows.len()),
            RowSelector::skip(end - rows.end),
        ])
    }

    /// The number of pages.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether the column has no page.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
