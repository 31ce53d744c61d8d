//! What the report is shown on: how wide, and whether it understands bold.
//!
//! `NO_COLOR` and `TERM=dumb` are respected (no-color.org).

use std::io::IsTerminal;

/// Columns where nobody says otherwise.
pub const WIDTH: usize = 80;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Emphasis.
    pub style: Style,
}

/// Whether escape sequences may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences.
    Plain,
    /// Bold where it helps.
    Bold,
}

impl Page {
    /// A file, a pipe: 80 columns, nothing but text.
    pub const PLAIN: Page = Page { width: WIDTH, style: Style::Plain };

    /// Standard error as it is.
    pub fn of_stderr() -> Page {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return Page::PLAIN;
        }
        let width = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        let width = if width == 0 { WIDTH } else { width };
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Page { width, style: if no_color || dumb { Style::Plain } else { Style::Bold } }
    }

    /// Emphasised.
    pub fn bold(&self, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_owned(),
            Style::Bold => format!("\x1b[1m{text}\x1b[0m"),
        }
    }
}

/// Control characters made visible, so that a name cannot steer the terminal.
pub fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(visible).collect()
}

/// At most `width` characters: what does not fit is left out of the middle.
pub fn middle_cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head = kept.div_ceil(2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - (kept - head)).collect();
    start + "…" + &end
}

/// A paragraph beside `head`, broken between words at 80 columns.
pub fn beside(head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let (mut out, mut column) = (head.to_owned(), indent);
    for (index, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if index > 0 && column + 1 + width > WIDTH {
            out += &format!("\n{:indent$}", "");
            column = indent;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(middle_cut("short", 5), "short");
        assert_eq!(middle_cut("abcdefghij", 7), "abc…hij");
        assert_eq!(middle_cut("äöüßäöüß", 4), "äö…ß");
        assert_eq!(middle_cut("abc", 0).chars().count(), 1);
    }

    #[test]
    fn paragraphs_keep_to_80_columns() {
        let out = beside("head  ", "word ".repeat(40).trim_end());
        assert!(out.lines().all(|line| line.len() <= WIDTH) && out.lines().count() == 3, "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with("      word")), "{out}");
        assert_eq!(beside("a ", "b"), "a b\n");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
