//! Sorted arrays and pages of sorted Parquet columns against binary searches, and what of a file is
//! read.

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::{
    Date32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType, UInt32Type, UInt64Type,
};
use datafusion::prelude::SessionContext;
use lightfoot_datafusion::{PageKey, SortedIndex, SortedPages};
use lightfoot_search::Key;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::ArrowWriter;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use proptest::prelude::*;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex};

/// A file in memory that notes which of its bytes are read.
#[derive(Clone)]
struct Noting {
    bytes: bytes::Bytes,
    read: Arc<Mutex<Vec<Range<u64>>>>,
}

impl Length for Noting {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for Noting {
    type T = <bytes::Bytes as ChunkReader>::T;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.read.lock().unwrap().push(start..self.len());
        self.bytes.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<bytes::Bytes> {
        self.read.lock().unwrap().push(start..start + length as u64);
        self.bytes.get_bytes(start, length)
    }
}

/// A file with pages of `page_rows` rows and groups of `group_rows`, beside the keys a column of
/// strings.
fn file<T: ArrowPrimitiveType>(keys: &PrimitiveArray<T>, page_rows: usize, group_rows: usize) -> Noting {
    let texts: ArrayRef =
        Arc::new((0..keys.len()).map(|row| Some(format!("row {row}"))).collect::<StringArray>());
    let batch =
        RecordBatch::try_from_iter([("key", Arc::new(keys.clone()) as ArrayRef), ("text", texts)]).unwrap();
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_max_row_group_row_count(Some(group_rows))
        .set_dictionary_enabled(false)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    Noting { bytes: bytes.into(), read: Arc::default() }
}

fn open(file: &Noting) -> ParquetRecordBatchReaderBuilder<Noting> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap()
}

fn check_ranks<T: ArrowPrimitiveType>(mut keys: Vec<T::Native>, queries: Vec<Option<T::Native>>)
where
    T::Native: Key,
{
    keys.sort_by(Key::compare);
    let index = SortedIndex::build(&PrimitiveArray::<T>::from_iter_values(keys.clone())).unwrap();
    let expected: UInt64Array = queries
        .iter()
        .map(|query| query.map(|query| keys.partition_point(|key| Key::compare(key, &query).is_lt()) as u64))
        .collect();
    let queries = PrimitiveArray::<T>::from_iter(queries);
    assert_eq!(index.ranks(&queries), expected);
    let half = queries.len() / 2;
    assert_eq!(
        index.ranks(&queries.slice(half, queries.len() - half)),
        expected.slice(half, queries.len() - half)
    );
    assert_eq!((index.len(), index.is_empty()), (keys.len(), keys.is_empty()));
}

fn check_pages<T: ArrowPrimitiveType>(
    mut keys: Vec<T::Native>,
    page_rows: usize,
    bounds: (Bound<T::Native>, Bound<T::Native>),
) where
    T::Native: PageKey + PartialOrd,
{
    keys.sort_by(Key::compare);
    let array = PrimitiveArray::<T>::from_iter_values(keys.iter().copied());
    let file = file(&array, page_rows, 3 * page_rows + 1);
    let builder = open(&file);
    let pages = SortedPages::<T::Native>::new(builder.metadata(), "key").unwrap();
    let metadata = builder.metadata().clone();

    // The pages that hold a key within the bounds, by a look at every page.
    let locations = metadata.offset_index().unwrap().iter().zip(metadata.row_groups()).scan(
        0,
        |first, (columns, group)| {
            let start = *first;
            *first += group.num_rows() as usize;
            let pages = columns[0].page_locations();
            let ends = pages.iter().skip(1).map(|page| page.first_row_index).chain([group.num_rows()]);
            let ranges = pages.iter().zip(ends).map(move |(page, end)| {
                let bytes = page.offset as u64..page.offset as u64 + page.compressed_page_size as u64;
                (start + page.first_row_index as usize..start + end as usize, bytes)
            });
            Some(ranges.collect::<Vec<_>>())
        },
    );
    let locations: Vec<(Range<usize>, Range<u64>)> = locations.flatten().collect();
    assert_eq!((pages.len(), pages.is_empty()), (locations.len(), locations.is_empty()));
    use std::ops::RangeBounds;
    let is_needed = |rows: &Range<usize>| {
        let inside = bounds.contains(&keys[rows.start]) || bounds.contains(&keys[rows.end - 1]);
        inside || keys[rows.clone()].iter().any(|key| bounds.contains(key))
    };
    let needed: Vec<usize> = (0..locations.len()).filter(|&page| is_needed(&locations[page].0)).collect();
    let found = pages.pages(bounds);
    // A page whose keys lie around narrow bounds has none within them, and has to be read.
    assert!(needed.iter().all(|page| found.contains(page)), "{needed:?} {found:?}");
    assert!(found.len() <= needed.len() + 1, "{needed:?} {found:?}");

    // What is read: no byte of another page of the column.
    file.read.lock().unwrap().clear();
    let mask = parquet::arrow::ProjectionMask::columns(metadata.file_metadata().schema_descr(), ["key"]);
    let reader = builder.with_projection(mask).with_row_selection(pages.selection(bounds)).build().unwrap();
    let read: Vec<T::Native> = reader
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<T>().values().to_vec())
        .filter(|key| bounds.contains(key))
        .collect();
    let expected: Vec<T::Native> = keys.iter().copied().filter(|key| bounds.contains(key)).collect();
    assert_eq!(read, expected);
    for bytes in file.read.lock().unwrap().iter() {
        let page = locations.iter().position(|(_, page)| page.start <= bytes.start && bytes.end <= page.end);
        let page = page.unwrap_or_else(|| panic!("{bytes:?} is no page of the column"));
        assert!(found.contains(&page), "page {page} was read, {found:?} are needed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn ranks_agree(
        keys in prop::collection::vec(any::<i64>().prop_map(|key| key >> (key & 63)), 0..3000),
        queries in prop::collection::vec(prop::option::of(any::<i64>().prop_map(|key| key >> (key & 63))), 0..300),
    ) {
        check_ranks::<Int64Type>(keys.clone(), queries.clone());
        check_ranks::<TimestampMillisecondType>(keys.clone(), queries.clone());
        check_ranks::<UInt64Type>(
            keys.iter().map(|&key| key as u64).collect(), queries.iter().map(|query| query.map(|key| key as u64)).collect());
        check_ranks::<UInt32Type>(
            keys.iter().map(|&key| key as u32).collect(), queries.iter().map(|query| query.map(|key| key as u32)).collect());
        check_ranks::<Date32Type>(
            keys.iter().map(|&key| key as i32).collect(), queries.iter().map(|query| query.map(|key| key as i32)).collect());
        check_ranks::<Float64Type>(
            keys.iter().map(|&key| key as f64).collect(), queries.iter().map(|query| query.map(|key| key as f64)).collect());
    }

    #[test]
    fn only_needed_pages_are_read(
        keys in prop::collection::vec(any::<i64>().prop_map(|key| key >> (key & 63)), 1..400),
        page_rows in 1usize..30,
        low in any::<i64>().prop_map(|key| key >> (key & 63)),
        high in any::<i64>().prop_map(|key| key >> (key & 63)),
        is_open in any::<bool>(),
    ) {
        let (low, high) = (low.min(high), low.max(high));
        let bounds = match is_open {
            true => (Bound::Unbounded, Bound::Excluded(high)),
            false => (Bound::Included(low), Bound::Included(high)),
        };
        check_pages::<Int64Type>(keys.clone(), page_rows, bounds);
        let signed = |bound: Bound<i64>| bound.map(|key| key as i32);
        if let (Bound::Included(low), Bound::Included(high)) = (signed(bounds.0), signed(bounds.1)) {
            let bounds = (Bound::Included(low.min(high)), Bound::Excluded(low.max(high)));
            check_pages::<Int32Type>(keys.iter().map(|&key| key as i32).collect(), page_rows, bounds);
        }
        let bits = |key: i64| key as u64;
        if !is_open {
            let (low, high) = (bits(low).min(bits(high)), bits(low).max(bits(high)));
            check_pages::<UInt64Type>(
                keys.iter().map(|&key| bits(key)).collect(), page_rows, (Bound::Included(low), Bound::Excluded(high)));
            check_pages::<UInt32Type>(
                keys.iter().map(|&key| key as u32).collect(), page_rows, (Bound::Included(low as u32), Bound::Unbounded));
        }
    }
}

#[test]
fn misuse_is_named() {
    let with_null = PrimitiveArray::<Int64Type>::from(vec![Some(1), None]);
    let error = SortedIndex::build(&with_null).unwrap_err().to_string();
    assert!(error.contains("1 of 2 keys are null"), "{error}");
    let error = SortedIndex::build(&PrimitiveArray::<Int64Type>::from(vec![2, 1])).unwrap_err().to_string();
    assert!(error.contains("the key at position 1 is smaller"), "{error}");

    let refusal = |keys: PrimitiveArray<Int64Type>, column: &str| {
        let builder = open(&file(&keys, 2, 4));
        SortedPages::<i64>::new(builder.metadata(), column).unwrap_err().to_string()
    };
    let sorted = || PrimitiveArray::<Int64Type>::from_iter_values(0..9);
    assert!(refusal(sorted(), "kee").contains("the file has no column kee; it has key, text"));
    assert!(refusal(sorted(), "text").contains("column text holds no keys of type i64"));
    let unsorted = PrimitiveArray::<Int64Type>::from(vec![1, 2, 9, 9, 3, 4]);
    assert!(refusal(unsorted, "key").contains("column key is not sorted"));
    let nulls = PrimitiveArray::<Int64Type>::from(vec![Some(1), None, Some(3)]);
    assert!(refusal(nulls, "key").contains("may hold nulls in row group 0"));
    let builder = open(&file(&sorted(), 2, 4));
    let error = SortedPages::<u64>::new(builder.metadata(), "key").unwrap_err().to_string();
    assert!(error.contains("column key holds no keys of type u64"), "{error}");
    let plain = ParquetRecordBatchReaderBuilder::try_new(file(&sorted(), 2, 4)).unwrap();
    let error = SortedPages::<i64>::new(plain.metadata(), "key").unwrap_err().to_string();
    assert!(error.contains("PageIndexPolicy::Required"), "{error}");
}

/// DataFusion reads the selected rows of a file.
#[tokio::test]
async fn datafusion_takes_a_selection() {
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
    use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
    use datafusion::datasource::source::DataSourceExec;
    use datafusion::execution::object_store::ObjectStoreUrl;

    let file = file(&PrimitiveArray::<Int64Type>::from_iter_values(0..1000), 10, 95);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.parquet");
    std::fs::write(&path, &file.bytes).unwrap();
    let builder = open(&file);
    let pages = SortedPages::<i64>::new(builder.metadata(), "key").unwrap();
    let selection = ParquetRowSelection::new(pages.selection(503..=517));
    let part =
        PartitionedFile::new(path.display().to_string(), file.bytes.len() as u64).with_extension(selection);
    let source = Arc::new(ParquetSource::new(builder.schema().clone()));
    let config =
        FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source).with_file(part).build();
    let context = SessionContext::new();
    let batches =
        datafusion::physical_plan::collect(DataSourceExec::from_data_source(config), context.task_ctx());
    let keys: Vec<i64> = batches
        .await
        .unwrap()
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    // Groups of 95 rows begin pages anew: those of row 503 and 517 begin at 495 and 515.
    assert_eq!(keys, (495..525).collect::<Vec<i64>>());
}
