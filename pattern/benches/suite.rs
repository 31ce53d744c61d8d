//! The cases of the `regex` repository's test data, run through [`lightfoot_pattern::Regex`]: how
//! many give the same spans, and why others are not run.
//!
//! `cargo bench -p lightfoot-pattern --bench suite -- FOLDER`, where FOLDER is `testdata` of a
//! checkout. Cases with several patterns are asked which of them match; bounds are honoured by
//! searching from their start and within their end. Ends with status 1 when a case that is run
//! differs.
//!
//! With a file `spencer1.tests` of a checkout of GNU grep instead of a folder, its lines
//! `STATUS@EXPRESSION@TEXT` are run: 0 for a match, 1 for none, 2 for an expression that is
//! refused. POSIX's extended expressions differ from ours in places, so what differs is listed and
//! the status is 0.

use lightfoot_pattern::regex::{Case, Options, RegexBuilder, RegexSet, Unit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Value;

fn main() {
    let folder =
        std::env::args().skip(1).find(|word| word != "--bench").expect("the folder of the test data");
    if folder.ends_with(".tests") {
        return spencer(Path::new(&folder));
    }
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file is text");
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let of_another_crate = file.file_name().is_some_and(|name| name == "regex-lite.toml");
        for case in table.get("test").and_then(Value::as_array).into_iter().flatten() {
            let outcome = match of_another_crate {
                true => Err(Verdict::NotRun("for regex-lite, whose classes are ASCII")),
                false => run(case),
            };
            if let Err(Verdict::Differs(how)) = &outcome {
                failures += 1;
                println!("{}/{}: {how}", file.display(), string(case, "name"));
            }
            let kind = match outcome {
                Ok(kind) => format!("same: {kind}"),
                Err(Verdict::Differs(_)) => "differs".to_string(),
                Err(Verdict::NotRun(reason)) => format!("not run: {reason}"),
            };
            *tally.entry(kind).or_default() += 1;
        }
    }
    for (kind, count) in &tally {
        println!("{count:>6} {kind}");
    }
    std::process::exit(i32::from(failures > 0));
}

/// Henry Spencer's cases in the form of GNU grep's file.
fn spencer(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut same, mut all) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('@');
        let (Some(status), Some(pattern), Some(text)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let found = match lightfoot_pattern::Regex::new(pattern) {
            Ok(regex) => i32::from(!regex.is_match(format!("{text}\n").as_bytes())),
            Err(_) => 2,
        };
        all += 1;
        match status.parse() == Ok(found) {
            true => same += 1,
            false => println!("{line}: {found}"),
        }
    }
    println!("{same} of {all} the same");
}

enum Verdict {
    Differs(String),
    NotRun(&'static str),
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("the folder is readable").path()) {
        match path.extension() {
            _ if path.is_dir() => collect(&path, files),
            Some(extension) if extension == "toml" => files.push(path),
            _ => (),
        }
    }
    files.sort();
}

fn string<'v>(case: &'v Value, key: &str) -> &'v str {
    case.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(case: &Value, key: &str, otherwise: bool) -> bool {
    case.get(key).and_then(Value::as_bool).unwrap_or(otherwise)
}

fn number(value: &Value) -> usize {
    value.as_integer().map_or(0, |number| number as usize)
}

fn run(case: &Value) -> Result<&'static str, Verdict> {
    if string(case, "search-kind") == "earliest" {
        return Err(Verdict::NotRun("earliest search"));
    }
    let patterns: Vec<String> = match case.get("regex") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_string).collect(),
        _ => return Err(Verdict::NotRun("no pattern")),
    };
    let haystack = match flag(case, "unescape", false) {
        true => unescaped(string(case, "haystack")),
        false => string(case, "haystack").as_bytes().to_vec(),
    };
    let terminator = match flag(case, "unescape", false) {
        true => unescaped(string(case, "line-terminator")),
        false => string(case, "line-terminator").as_bytes().to_vec(),
    };
    let mut options = Options::default();
    options.unit = Unit::Text;
    options.unicode = flag(case, "unicode", true);
    options.utf8 = flag(case, "utf8", true);
    options.case = if flag(case, "case-insensitive", false) { Case::Insensitive } else { Case::Sensitive };
    options.text_line_end = terminator.first().copied().unwrap_or(b'\n');
    let builder = RegexBuilder::new().options(options);
    let kind = string(case, "match-kind");
    if patterns.len() != 1 {
        return set(case, &builder, &patterns, &haystack);
    }
    if kind == "all" || string(case, "search-kind") == "overlapping" {
        return Err(Verdict::NotRun("all matches rather than the leftmost-first ones"));
    }
    let regex = match builder.build(&patterns[0]) {
        Ok(_) if !flag(case, "compiles", true) => {
            return Err(Verdict::NotRun("asks for what only a smaller engine refuses"))
        }
        Ok(regex) => regex,
        Err(_) if !flag(case, "compiles", true) => return Ok("refused"),
        Err(error) => return Err(Verdict::Differs(error.to_string())),
    };
    let expected = spans(case);
    let most = case.get("match-limit").map_or(usize::MAX, number);
    let (bounds, is_anchored) = (case.get("bounds").and_then(bounds), flag(case, "anchored", false));
    let found: Vec<Range<usize>> = match bounds {
        None if !is_anchored => regex.find_iter(&haystack).take(most).collect(),
        Some(bounds) if bounds.end != haystack.len() => {
            return Err(Verdict::NotRun("an end of the search before that of the text"))
        }
        bounds => {
            let begin = if is_anchored { Begin::WhereTheLastEnded } else { Begin::Anywhere };
            let mut found = all_from(&regex, &haystack, bounds.map_or(0, |bounds| bounds.start), begin);
            found.truncate(most);
            found
        }
    };
    if found == expected {
        return Ok("spans");
    }
    Err(Verdict::Differs(format!("{:?} gave {found:?}, expected {expected:?}", patterns[0])))
}

/// Where a match may begin.
#[derive(PartialEq)]
enum Begin {
    Anywhere,
    /// As anchored searches have it. A match there is the leftmost one, so an unanchored search
    /// finds it.
    WhereTheLastEnded,
}

/// Matches from a place on, what lies before being seen by look-behind.
fn all_from(regex: &lightfoot_pattern::Regex, text: &[u8], from: usize, begin: Begin) -> Vec<Range<usize>> {
    let (mut at, mut found): (usize, Vec<Range<usize>>) = (from, Vec::new());
    while let Some(next) = (at <= text.len()).then(|| regex.find_at(text, at)).flatten() {
        if begin == Begin::WhereTheLastEnded && next.start != at {
            break;
        }
        if next.is_empty() && found.last().is_some_and(|last| last.end == next.end) {
            at = next.end + 1;
            continue;
        }
        at = next.end;
        found.push(next);
    }
    found
}

/// Several patterns: which match.
fn set(
    case: &Value,
    builder: &RegexBuilder,
    patterns: &[String],
    text: &[u8],
) -> Result<&'static str, Verdict> {
    if case.get("bounds").is_some() {
        return Err(Verdict::NotRun("bounds with several patterns"));
    }
    if string(case, "match-kind") != "all" || string(case, "search-kind") != "overlapping" {
        return Err(Verdict::NotRun("spans of several patterns"));
    }
    let set = RegexSet::with(builder, patterns).map_err(|error| Verdict::Differs(error.to_string()))?;
    let mut expected: Vec<usize> = case
        .get("matches")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|one| one.get("id").map_or(0, number))
        .collect();
    expected.sort_unstable();
    expected.dedup();
    match set.matches(text) {
        found if found == expected => Ok("which of several match"),
        found => Err(Verdict::Differs(format!("{patterns:?} gave {found:?}, expected {expected:?}"))),
    }
}

fn bounds(value: &Value) -> Option<Range<usize>> {
    match value {
        Value::Array(pair) if pair.len() == 2 => Some(number(&pair[0])..number(&pair[1])),
        Value::Table(table) => Some(number(table.get("start")?)..number(table.get("end")?)),
        _ => None,
    }
}

/// A match is a pair, a table with a span, or a list of groups of which the first one is the match.
fn spans(case: &Value) -> Vec<Range<usize>> {
    let span = |value: &Value| match value {
        Value::Table(table) => match (table.get("span"), table.get("spans")) {
            (Some(span), _) => bounds(span),
            (_, Some(Value::Array(groups))) => bounds(&groups[0]),
            _ => bounds(value),
        },
        Value::Array(parts) if parts.first().is_some_and(Value::is_array) => bounds(&parts[0]),
        _ => bounds(value),
    };
    case.get("matches").and_then(Value::as_array).into_iter().flatten().filter_map(span).collect()
}

/// `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN`.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut out, bytes, mut at) = (Vec::new(), text.as_bytes(), 0);
    while at < bytes.len() {
        let escaped = (bytes[at] == b'\\').then(|| bytes.get(at + 1)).flatten();
        let (byte, taken) = match escaped {
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(b'0') => (0, 2),
            Some(b'\\') => (b'\\', 2),
            Some(b'x') => (u8::from_str_radix(&text[at + 2..at + 4], 16).expect("two hexadecimal digits"), 4),
            _ => (bytes[at], 1),
        };
        out.push(byte);
        at += taken;
    }
    out
}
