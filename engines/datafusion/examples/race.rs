//! Queries over generated web and log columns, with and without these functions, in one process.
//!
//! `cargo run --release --manifest-path engines/Cargo.toml -p lightfoot-datafusion --example race`
//! `[-- ROWS ROUNDS PARTITIONS TYPE PART]`: for each query with PART in its name the medians of
//! both sides and their ratio, rounds of both interleaved. Queries are ClickBench's over URL,
//! title and referer (by its numbers), and searches in lines of a log. Columns hold what
//! ClickBench's do, in lengths and in how often the searched words stand there; they are made up
//! from the number of the row.

use arrow::array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use std::time::Instant;

const BATCH_ROWS: usize = 8192;

/// ClickBench's queries that search strings, and searches of a log: a name, a table, SQL.
const QUERIES: [(&str, &str); 16] = [
    ("q20 URL LIKE", "SELECT count(*) FROM hits WHERE URL LIKE '%google%'"),
    (
        "q21 URL LIKE, groups",
        "SELECT SearchPhrase, min(URL), count(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> '' \
         GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10",
    ),
    (
        "q22 Title LIKE, URL NOT LIKE",
        "SELECT SearchPhrase, min(URL), min(Title), count(*) AS c, count(DISTINCT UserID) FROM hits WHERE Title \
         LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' GROUP BY SearchPhrase \
         ORDER BY c DESC, SearchPhrase LIMIT 10",
    ),
    ("q23 URL LIKE, all columns", "SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime, UserID LIMIT 10"),
    (
        "q28 REGEXP_REPLACE host",
        "SELECT regexp_replace(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS k, avg(length(Referer)) AS l, \
         count(*) AS c, min(Referer) FROM hits WHERE Referer <> '' GROUP BY k HAVING count(*) > 100 \
         ORDER BY l DESC, k LIMIT 25",
    ),
    (
        "q28's REGEXP_REPLACE alone",
        "SELECT sum(octet_length(regexp_replace(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1'))) FROM hits",
    ),
    ("URL ILIKE", "SELECT count(*) FROM hits WHERE URL ILIKE '%GooGle%'"),
    ("URL LIKE two strings", "SELECT count(*) FROM hits WHERE URL LIKE '%id=%&page=%'"),
    ("URL ~ number", "SELECT count(*) FROM hits WHERE URL ~ '[?&]id=[0-9]{5}(&|$)'"),
    ("log address", "SELECT count(*) FROM logs WHERE line ~ '\\b[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\b'"),
    ("log identifier", "SELECT count(*) FROM logs WHERE line ~ '\\b[0-9a-f]{8}-[0-9a-f]{4}\\b'"),
    ("log words ~*", "SELECT count(*) FROM logs WHERE line ~* 'timeout|refused|unreachable'"),
    ("log date and level", "SELECT count(*) FROM logs WHERE line ~ '^2026-[0-9-]+T.*(ERROR|WARN)'"),
    ("log word ending", "SELECT count(*) FROM logs WHERE line ~ '\\w+ing\\b'"),
    ("log count", "SELECT sum(regexp_count(line, '0x[0-9a-f]{6,}')) FROM logs"),
    ("log replace", "SELECT max(length(regexp_replace(line, '[0-9a-f]{8}-[0-9a-f]{4}', '-', 'g'))) FROM logs"),
];

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const WORDS: [&str; 24] = [
    "lamp",
    "chair",
    "catalog",
    "news",
    "auto",
    "photo",
    "forum",
    "kitchen",
    "index",
    "user",
    "search",
    "item",
    "новости",
    "погода",
    "видео",
    "foto",
    "clothes",
    "travel",
    "tickets",
    "weather",
    "maps",
    "mail",
    "games",
    "shop",
];

fn words(numbers: &mut Numbers, count: usize, between: &str) -> String {
    (0..count).map(|_| numbers.pick(&WORDS)).collect::<Vec<_>>().join(between)
}

fn url(numbers: &mut Numbers) -> String {
    let host = match numbers.one_in(5000) {
        true => "www.google.ru".to_owned(),
        false => format!(
            "{}{}{}.{}",
            numbers.pick(&["", "www.", "m."]),
            numbers.pick(&WORDS[..12]),
            numbers.below(300),
            numbers.pick(&["ru", "com", "net"])
        ),
    };
    let depth = 1 + numbers.below(4);
    let path = words(numbers, depth, "/");
    let scheme = numbers.pick(&["http", "http", "https"]);
    let query = match numbers.below(3) {
        0 => String::new(),
        1 => format!("?id={}", numbers.below(1_000_000)),
        _ => format!(
            "?{}={}&id={}&page={}",
            numbers.pick(&WORDS),
            numbers.below(999),
            numbers.below(99_999),
            numbers.below(9)
        ),
    };
    format!("{scheme}://{host}/{path}{query}")
}

fn title(numbers: &mut Numbers) -> String {
    let count = 4 + numbers.below(8);
    let text = words(numbers, count, " ");
    if numbers.one_in(3000) {
        format!("{text} - Google")
    } else {
        text
    }
}

fn line(numbers: &mut Numbers) -> String {
    let level = numbers.pick(&["INFO", "INFO", "INFO", "DEBUG", "INFO", "WARN", "ERROR"]);
    let message = match numbers.below(8) {
        0 => format!(
            "connection from 10.{}.{}.{} port {}",
            numbers.below(256),
            numbers.below(256),
            numbers.below(256),
            numbers.below(65536)
        ),
        1 => format!(
            "request {:08x}-{:04x} took {} ms",
            numbers.next() as u32,
            numbers.next() as u16,
            numbers.below(3000)
        ),
        2 if numbers.one_in(20) => "upstream timeout while reading response header".to_owned(),
        3 => format!("page fault at 0x{:08x} in worker {}", numbers.next() as u32, numbers.below(64)),
        _ => {
            let count = 5 + numbers.below(10);
            words(numbers, count, " ")
        }
    };
    format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z {level} server[{}]: {message}",
        1 + numbers.below(12),
        1 + numbers.below(28),
        numbers.below(24),
        numbers.below(60),
        numbers.below(60),
        numbers.below(1000),
        numbers.below(32768)
    )
}

fn strings(rows: Vec<String>, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::Utf8 => Arc::new(StringArray::from(rows)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(rows)),
        _ => Arc::new(StringViewArray::from_iter_values(rows)),
    }
}

fn hits(rows: usize, data_type: &DataType, numbers: &mut Numbers) -> Result<RecordBatch> {
    let mut column = |make: &dyn Fn(&mut Numbers) -> String| {
        strings((0..rows).map(|_| make(numbers)).collect(), data_type)
    };
    let urls = column(&url);
    let titles = column(&title);
    let referers = column(&|numbers| if numbers.one_in(5) { String::new() } else { url(numbers) });
    let phrases = column(&|numbers| if numbers.one_in(8) { words(numbers, 2, " ") } else { String::new() });
    let users: ArrayRef = Arc::new((0..rows).map(|_| numbers.below(100_000) as i64).collect::<Int64Array>());
    let times: ArrayRef = Arc::new((0..rows).map(|_| numbers.below(86_400) as i64).collect::<Int64Array>());
    let columns = [
        ("url", urls),
        ("title", titles),
        ("referer", referers),
        ("searchphrase", phrases),
        ("userid", users),
        ("eventtime", times),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// A table of batches as a scan of a file gives them, dealt to partitions.
fn table(batch: &RecordBatch, partitions: usize) -> Result<Arc<MemTable>> {
    let mut parts = vec![Vec::new(); partitions];
    for (at, start) in (0..batch.num_rows()).step_by(BATCH_ROWS).enumerate() {
        parts[at % partitions].push(batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start)));
    }
    Ok(Arc::new(MemTable::try_new(Arc::new(Schema::clone(&batch.schema())), parts)?))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

async fn run(context: &SessionContext, sql: &str) -> Result<(f64, String)> {
    let started = Instant::now();
    let batches = context.sql(sql).await?.collect().await?;
    let seconds = started.elapsed().as_secs_f64();
    Ok((seconds, arrow::util::pretty::pretty_format_batches(&batches)?.to_string()))
}

async fn race(rows: usize, rounds: usize, partitions: usize, data_type: &DataType) -> Result<()> {
    let mut numbers = Numbers(7);
    let hits = table(&hits(rows, data_type, &mut numbers)?, partitions)?;
    let lines = strings((0..rows).map(|_| line(&mut numbers)).collect(), data_type);
    let logs = table(&RecordBatch::try_from_iter([("line", lines)])?, partitions)?;
    let session = || -> Result<SessionContext> {
        let context =
            SessionContext::new_with_config(SessionConfig::new().with_target_partitions(partitions));
        context.register_table("hits", hits.clone())?;
        context.register_table("logs", logs.clone())?;
        Ok(context)
    };
    let (theirs, ours) = (session()?, session()?);
    lightfoot_datafusion::register(&ours);
    println!("{rows} rows, {data_type}, {partitions} partition(s), medians of {rounds} rounds");
    println!("| query | DataFusion, ms | lightfoot, ms | ratio |\n|---|---:|---:|---:|");
    let part = std::env::args().nth(5).unwrap_or_default();
    let chosen: Vec<_> = QUERIES.into_iter().filter(|(name, _)| name.contains(&part)).collect();
    let mut product = 1.0;
    for &(name, sql) in &chosen {
        // The first round warms both.
        let (expected, found) = (run(&theirs, sql).await?.1, run(&ours, sql).await?.1);
        assert_eq!(expected, found, "{sql}");
        let (mut their_times, mut our_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            their_times.push(run(&theirs, sql).await?.0);
            our_times.push(run(&ours, sql).await?.0);
        }
        let (their, our) = (median(&mut their_times), median(&mut our_times));
        product *= their / our;
        println!("| {name} | {:.1} | {:.1} | {:.2} |", 1e3 * their, 1e3 * our, their / our);
    }
    println!("geometric mean {:.2}\n", f64::powf(product, 1.0 / chosen.len() as f64));
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let types = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for data_type in &types {
        if arguments.get(3).is_some_and(|wanted| *wanted != data_type.to_string()) {
            continue;
        }
        runtime.block_on(race(number(0, 400_000), number(1, 7), number(2, 1), data_type))?;
    }
    Ok(())
}
