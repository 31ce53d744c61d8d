//! Results for a pull request: a table in Markdown, and annotations of GitHub's checks.

use super::compare::{change, Comparison};
use super::results::Row;
use super::text::summary;
use present::number::grouped;

/// The columns of tables: headings and events.
const COLUMNS: &[(&str, &str)] = &[
    ("instructions", "instructions"),
    ("L1I misses", "l1i_misses"),
    ("L1D misses", "l1d_misses"),
    ("L2 misses", "l2_misses"),
    ("L3 misses", "l3_misses"),
    ("cycles", "estimated_cycles"),
];

/// The answer as a comment on a pull request: what is worse, what changed, and everything folded
/// up.
pub(super) fn markdown(compared: &Comparison<'_>, failed: &[String]) -> String {
    let mut out = format!("### Benchmarks\n\n{}.\n\n", escaped(&summary(compared)));
    for exceeded in &compared.exceeded {
        out += &format!("- **worse:** {}\n", escaped(&exceeded.sentence));
    }
    for sentence in failed {
        out += &format!("- **not counted:** {}\n", escaped(sentence));
    }
    for row in &compared.gone {
        out += &format!("- gone: {} {}\n", escaped(&row.program), escaped(&row.name));
    }
    if !(compared.exceeded.is_empty() && failed.is_empty() && compared.gone.is_empty()) {
        out.push('\n');
    }
    let all: Vec<&Row> = compared.results.benchmarks.iter().collect();
    if compared.baseline.is_none() {
        return out + &table(compared, &all);
    }
    let changed: Vec<&Row> = all.iter().copied().filter(|row| compared.differs(row)).collect();
    if !changed.is_empty() {
        out += &format!("{}\n", table(compared, &changed));
    }
    out + &format!("<details><summary>all benchmarks</summary>\n\n{}\n</details>\n", table(compared, &all))
}

fn table(compared: &Comparison<'_>, rows: &[&Row]) -> String {
    let counted = |event: &str| rows.iter().any(|row| row.events.contains_key(event));
    let columns: Vec<_> = COLUMNS.iter().filter(|(_, event)| counted(event)).collect();
    let headings: String = columns.iter().map(|(heading, _)| format!(" {heading} |")).collect();
    let mut out = format!("| benchmark |{headings}\n|---|{}\n", "---:|".repeat(columns.len()));
    for row in rows {
        out += &format!("| {} {} |", escaped(&row.program), escaped(&row.name));
        for (_, event) in &columns {
            out += &match compared.pair(row, event) {
                None => " |".to_owned(),
                Some((Some(before), now)) if before != now => {
                    format!(" {} ({}) |", grouped(now), change(Some(before), now))
                }
                Some((_, now)) => format!(" {} |", grouped(now)),
            };
        }
        out.push('\n');
    }
    out
}

/// A text without Markdown's own signs.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => out.extend(['\\', character]),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// A command of GitHub's runner for each limit that is exceeded, which annotates the benchmark, and
/// for each benchmark that was not counted.
pub(super) fn annotations(compared: &Comparison<'_>, failed: &[String]) -> String {
    let mut out = String::new();
    for exceeded in &compared.exceeded {
        let row = exceeded.row;
        let title = format!("title={}", property(&format!("benchmark {}", row.name)));
        let place = match row.file.is_empty() {
            true => title,
            false => format!("file={},line={},{title}", property(&row.file), row.line),
        };
        out += &format!("::error {place}::{}\n", message(&exceeded.sentence));
    }
    for sentence in failed {
        out += &format!("::error title=benchmark not counted::{}\n", message(sentence));
    }
    out
}

/// The text of an annotation, in which the runner wants these signs as their codes.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::compare::Chosen;
    use super::super::results::{Numbers, Results};
    use super::*;
    use crate::cli::{Growth, Limit};

    fn results(instructions: u64) -> Results {
        let events = Numbers::from([("instructions".into(), instructions)]);
        let same = Row {
            program: "sorting".into(),
            name: "same".into(),
            events: [("instructions".into(), 7)].into(),
            ..Row::default()
        };
        let row = Row {
            program: "sorting".into(),
            name: "a|b::c".into(),
            file: "benches/a,b.rs".into(),
            line: 3,
            events,
            ..Row::default()
        };
        Results { benchmarks: vec![row, same], ..Results::default() }
    }

    fn with_limit<T>(show: impl Fn(&Comparison<'_>) -> T) -> T {
        let (base, now) = (results(1000), results(2000));
        let limit =
            Limit { text: "instructions=+1%".into(), event: "instructions", growth: Growth::Percent(1.0) };
        show(&Comparison::new(&now, ("main", &base), &[limit], Chosen::All))
    }

    #[test]
    fn an_annotation_stands_at_the_benchmark() {
        assert_eq!(
            with_limit(|compared| annotations(compared, &[])),
            "::error file=benches/a%2Cb.rs,line=3,title=benchmark a|b%3A%3Ac::sorting a|b::c: 2,000 instructions \
             against 1,000 in baseline main, +100.0 %25: beyond instructions=+1%25\n"
        );
    }

    #[test]
    fn a_pull_request_sees_first_what_changed() {
        let text = with_limit(|compared| markdown(compared, &[]));
        let (changed, all) = text.split_once("<details>").unwrap();
        assert!(changed.contains("| sorting a\\|b::c | 2,000 (+100.0 %) |"), "{text}");
        assert!(changed.contains("- **worse:** sorting a\\|b::c: 2,000 instructions"), "{text}");
        assert!(!changed.contains("same") && all.contains("| sorting same | 7 |"), "{text}");
        let now = results(1);
        let alone = markdown(&Comparison::alone(&now), &["benchmark x of y: it panicked".to_owned()]);
        assert!(alone.contains("| sorting same | 7 |") && !alone.contains("<details>"), "{alone}");
        assert!(alone.contains("- **not counted:** benchmark x of y: it panicked\n\n"), "{alone}");
    }
}
