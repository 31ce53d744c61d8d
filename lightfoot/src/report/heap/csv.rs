//! A heap for spreadsheets: a header, the sum, and a line for each place.

use super::{HeapReport, SiteRow};
use present::csv::field;

const COLUMNS: &str = "bytes,blocks,most_bytes,most_blocks,peak_bytes,peak_blocks,end_bytes,end_blocks,\
                       lifetimes,read_bytes,written_bytes,untouched,stack";

impl HeapReport {
    /// The first `rows` places as CSV.
    pub fn csv(&self, rows: usize) -> String {
        let mut out = format!("{COLUMNS}\r\n{}", line(&self.total, "(total)"));
        for site in self.sites.iter().take(rows) {
            let frames: Vec<String> = site.stack.iter().map(|&frame| self.frames[frame].named()).collect();
            out += &line(site, &frames.join(" < "));
        }
        out
    }
}

fn line(site: &SiteRow, stack: &str) -> String {
    let numbers = [
        site.bytes,
        site.blocks,
        site.most_bytes,
        site.most_blocks,
        site.peak_bytes,
        site.peak_blocks,
        site.end_bytes,
        site.end_blocks,
        site.lifetimes,
        site.read_bytes,
        site.written_bytes,
        site.untouched,
    ];
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{},{}\r\n", numbers.join(","), field(stack))
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;

    #[test]
    fn a_place_is_a_line() {
        let text = report().csv(9);
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[1], "16,2,16,2,16,2,8,1,500,32,8,1,(total)");
        assert_eq!(lines[2], "16,2,16,2,16,2,8,1,500,32,8,1,build (a.c:5) < main (a.c:9)");
        assert_eq!((lines.len(), report().csv(0).matches('\n').count()), (3, 2));
        assert_eq!(lines[0].split(',').count(), 13);
    }
}
