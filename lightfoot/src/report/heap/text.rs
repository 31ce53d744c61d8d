//! A heap for people: what was allocated, and the places with their calls below them.

use super::{HeapReport, SiteRow};
use present::number::{brief, grouped};
use present::terminal::{middle_cut, printable, Page};

/// The columns of the table.
const HEADER: [&str; 7] = ["total", "blocks", "at peak", "at end", "read", "written", "life"];

impl HeapReport {
    /// The report with its first `rows` places as text.
    pub fn text(&self, rows: usize, page: &Page) -> String {
        let mut out = self.heading(page);
        out += &self.totals();
        out += &self.table(rows, page);
        for warning in &self.warnings {
            out += &page.sentence("warning: ", &printable(warning));
        }
        out
    }

    fn heading(&self, page: &Page) -> String {
        let name = "lightfoot heap";
        let end = match self.ran.partial {
            true => "interrupted: partial".to_owned(),
            false => format!("exit status {}", self.ran.exit_status),
        };
        let room = page.width.saturating_sub(name.len() + end.len() + 4).max(8);
        let command = printable(&self.ran.command.join(" "));
        format!("{}: {}, {end}\n", page.bold(name), middle_cut(&command, room))
    }

    fn totals(&self) -> String {
        let all = &self.total;
        let blocks = |count: u64| format!("bytes in {} {}", grouped(count), plural(count));
        let lines = [
            ("allocated", all.bytes, blocks(all.blocks)),
            ("at the peak", all.peak_bytes, {
                let at = grouped(self.peak_at);
                format!("{}, after {at} instructions", blocks(all.peak_blocks))
            }),
            ("at the end", all.end_bytes, blocks(all.end_blocks)),
            ("read", all.read_bytes, format!("bytes, {} a byte", share(all.read_bytes, all.bytes))),
            ("written", all.written_bytes, format!("bytes, {} a byte", share(all.written_bytes, all.bytes))),
            ("never touched", all.untouched, plural(all.untouched).to_owned()),
            ("instructions", self.instructions, String::new()),
        ];
        let width = lines.iter().map(|line| grouped(line.1).len()).max().unwrap_or(0);
        let line = |(label, value, unit): &(&str, u64, String)| {
            let line = format!("  {label:<16} {:>width$} {unit}", grouped(*value));
            line.trim_end().to_owned() + "\n"
        };
        lines.iter().map(line).collect()
    }

    fn table(&self, rows: usize, page: &Page) -> String {
        if self.sites.is_empty() {
            return String::new();
        }
        let line = |cells: [String; 7]| cells.iter().map(|cell| format!("{cell:>9}")).collect::<String>();
        let mut out = format!("\n{}\n", page.bold(&line(HEADER.map(str::to_owned))));
        for site in self.sites.iter().take(rows) {
            out += &format!("{}{}\n", line(cells(site)), untouched(site));
            for &frame in &site.stack {
                let name = printable(&self.frames[frame].named());
                out += &format!("      {}\n", middle_cut(&name, page.width.saturating_sub(6)));
            }
        }
        let more = self.sites.len().saturating_sub(rows);
        if more > 0 {
            out += &format!("({} more with --top 0)\n", grouped(more as u64));
        }
        out + "(read and written: bytes for each byte allocated; life: instructions a block)\n"
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 {
        "block"
    } else {
        "blocks"
    }
}

fn cells(site: &SiteRow) -> [String; 7] {
    [
        brief(site.bytes),
        brief(site.blocks),
        brief(site.peak_bytes),
        brief(site.end_bytes),
        share(site.read_bytes, site.bytes),
        share(site.written_bytes, site.bytes),
        brief(site.life()),
    ]
}

/// What is remarkable about a place.
fn untouched(site: &SiteRow) -> String {
    match site.untouched {
        0 => String::new(),
        count if count == site.blocks => "  never touched".to_owned(),
        count => format!("  {} never touched", brief(count)),
    }
}

/// How often each byte was accessed.
fn share(accessed: u64, bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        _ => format!("{:.2}", accessed as f64 / bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn places_have_their_numbers_and_calls() {
        let text = report().text(9, &Page::PLAIN);
        assert!(text.starts_with("lightfoot heap: a, exit status 0\n"), "{text}");
        assert!(text.contains("  allocated           16 bytes in 2 blocks\n"), "{text}");
        assert!(text.contains("  at the end           8 bytes in 1 block\n"), "{text}");
        let row = "       16        2       16        8     2.00     0.50      250  1 never touched\n";
        assert!(text.contains(&format!("{row}      build (a.c:5)\n      main (a.c:9)\n")), "{text}");
        assert!(report().text(0, &Page::PLAIN).contains("(1 more with --top 0)"));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
