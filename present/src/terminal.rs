//! What the report is shown on: how wide, whether it understands bold, and whether lines are broken
//! there.
//!
//! The width is `COLUMNS`, else the terminal's, else 80. Bold: never with `NO_COLOR`
//! (no-color.org); anywhere with `CLICOLOR_FORCE`, never with `CLICOLOR=0` (bixense.com/clicolors);
//! else on a terminal that `TERM` does not call dumb, or of a build machine (`CI`), whose logs show
//! it. Sentences are broken between words on a terminal alone: elsewhere a sentence is one line,
//! for whoever looks for it.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Columns where nobody says otherwise.
pub const WIDTH: usize = 80;
/// A width that somebody gives is believed from here on.
const WIDTH_MIN: usize = 20;

/// What is read from the environment, for manual pages.
pub const ENVIRONMENT: &[crate::help::Entry] = &[
    ("NO_COLOR", "Where it is set and not empty, nothing is bold or coloured."),
    (
        "CLICOLOR_FORCE",
        "Where it is set, not empty and not 0, bold is used without a terminal too; CLICOLOR=0 is for never.",
    ),
    ("TERM, CI", "Where TERM is dumb, nothing is bold; unless CI is set, whose logs show it."),
    ("COLUMNS", "Width of reports and messages; otherwise that of the terminal, or 80."),
];

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Emphasis.
    pub style: Style,
    /// Sentences.
    pub sentences: Sentences,
}

/// Whether escape sequences may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences.
    Plain,
    /// Bold where it helps.
    Bold,
}

/// Whether long sentences are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentences {
    /// Each is a line.
    Whole,
    /// Between words, at the page's width.
    Broken,
}

impl Page {
    /// A file, a pipe: 80 columns, nothing but text.
    pub const PLAIN: Page = Page { width: WIDTH, style: Style::Plain, sentences: Sentences::Whole };

    /// Standard error as it is.
    pub fn of_stderr() -> Page {
        let stderr = std::io::stderr();
        let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
        Page::of(stderr.is_terminal().then_some(columns))
    }

    /// Standard output as it is.
    pub fn of_stdout() -> Page {
        let stdout = std::io::stdout();
        let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
        Page::of(stdout.is_terminal().then_some(columns))
    }

    fn of(terminal: Option<usize>) -> Page {
        Page::new(terminal, |name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// What `variable` makes of a terminal of so many columns, 0 where it does not say; `None` is
    /// no terminal.
    fn new(terminal: Option<usize>, variable: impl Fn(&str) -> Option<OsString>) -> Page {
        let columns = variable("COLUMNS").and_then(|columns| columns.to_str()?.trim().parse().ok());
        let believed = |columns: &usize| *columns >= WIDTH_MIN;
        let width = columns.filter(believed).or(terminal.filter(believed)).unwrap_or(WIDTH);
        let is = |name: &str, value: &str| variable(name).is_some_and(|text| text == value);
        let dumb = variable("TERM").is_none_or(|term| term == "dumb") && variable("CI").is_none();
        let forced = variable("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0");
        let usual = terminal.is_some() && !dumb && !is("CLICOLOR", "0");
        let bold = variable("NO_COLOR").is_none() && (forced || usual);
        Page {
            width,
            style: if bold { Style::Bold } else { Style::Plain },
            sentences: if terminal.is_some() { Sentences::Broken } else { Sentences::Whole },
        }
    }

    /// Emphasised.
    pub fn bold(&self, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_owned(),
            Style::Bold => format!("\x1b[1m{text}\x1b[0m"),
        }
    }

    /// `head` and a sentence, in a line or in several, which then stand two columns in.
    pub fn sentence(&self, head: &str, text: &str) -> String {
        match self.sentences {
            Sentences::Whole => format!("{head}{text}\n"),
            Sentences::Broken => broken(head, text, 2, self.width),
        }
    }
}

/// Control characters made visible, so that a name cannot steer the terminal.
pub fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(visible).collect()
}

/// Control characters of a message made visible, but for the ends of its lines and tabs.
pub fn printable_lines(text: &str) -> String {
    let parts = text.split_inclusive(['\n', '\t']);
    let visible = parts.map(|part| match part.char_indices().next_back() {
        Some((at, '\n' | '\t')) => printable(&part[..at]) + &part[at..],
        _ => printable(part),
    });
    visible.collect()
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

/// At most `width` characters: what does not fit is left out at the front, as of a path whose end
/// says more.
pub fn front_cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let end: String = text.chars().skip(count - width.saturating_sub(1)).collect();
    format!("…{end}")
}

/// A paragraph beside `head`, broken between words at 80 columns.
pub fn beside(head: &str, text: &str) -> String {
    broken(head, text, head.chars().count(), WIDTH)
}

/// `head` and a paragraph, broken between words; all lines but the first are indented. A word that
/// no line has room for is left whole.
fn broken(head: &str, text: &str, indent: usize, columns: usize) -> String {
    let (mut out, mut column) = (head.to_owned(), head.chars().count());
    for (index, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if index > 0 && column + 1 + width > columns {
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
        assert_eq!((front_cut("short", 5), front_cut("abcdefgh", 4)), ("short".into(), "…fgh".into()));
    }

    #[test]
    fn paragraphs_keep_to_80_columns() {
        let out = beside("head  ", "word ".repeat(40).trim_end());
        assert!(out.lines().all(|line| line.len() <= WIDTH) && out.lines().count() == 3, "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with("      word")), "{out}");
        assert_eq!(beside("a ", "b"), "a b\n");
    }

    #[test]
    fn variables_decide_as_elsewhere() {
        let page = |terminal, variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            Page::new(terminal, |name| find(name).map(|(_, value)| value.into()))
        };
        let (term, at) = (("TERM", "xterm"), Some(100));
        assert_eq!(page(at, &[term]), Page { width: 100, style: Style::Bold, sentences: Sentences::Broken });
        assert_eq!(page(None, &[term]), Page::PLAIN);
        for (columns, width) in [("120", 120), ("nonsense", 100), ("-1", 100), ("0", 100), ("3", 100)] {
            assert_eq!(page(at, &[("COLUMNS", columns)]).width, width, "{columns}");
        }
        assert_eq!((page(Some(0), &[]).width, page(None, &[("COLUMNS", "60")]).width), (80, 60));
        let style = |terminal, variables: &[(&str, &str)]| page(terminal, variables).style;
        for plain in [
            &[("TERM", "dumb")] as &[_],
            &[],
            &[term, ("NO_COLOR", "1")],
            &[term, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
            &[term, ("CLICOLOR", "0")],
            &[("TERM", "dumb"), ("CLICOLOR_FORCE", "0")],
        ] {
            assert_eq!(style(at, plain), Style::Plain, "{plain:?}");
        }
        for bold in [&[("CI", "true")] as &[_], &[("TERM", "dumb"), ("CI", "1")], &[term, ("CLICOLOR", "1")]]
        {
            assert_eq!((style(at, bold), style(None, bold)), (Style::Bold, Style::Plain), "{bold:?}");
        }
        assert_eq!(style(None, &[("CLICOLOR_FORCE", "1")]), Style::Bold);
    }

    #[test]
    fn sentences_are_broken_on_terminals_alone() {
        let words = "word ".repeat(28);
        let broken = Page { sentences: Sentences::Broken, ..Page::PLAIN }.sentence("warning: ", words.trim());
        assert!(broken.lines().count() == 2 && broken.lines().all(|line| line.len() <= WIDTH), "{broken}");
        assert!(broken.starts_with("warning: word") && broken.contains("\n  word"), "{broken}");
        assert_eq!(Page::PLAIN.sentence("warning: ", &words), format!("warning: {words}\n"));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable_lines("a\x1b\n\tb\x07\n\u{9b}"), "a\\u{1b}\n\tb\\u{7}\n\\u{9b}");
    }
}
