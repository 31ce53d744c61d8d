//! Fields of a table for spreadsheets. Source: RFC 4180 for quoting.

/// Begins what a spreadsheet takes for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A name: quoted where a reader would otherwise split it, and as text where a spreadsheet would
/// otherwise calculate it. Whoever makes the program chooses its names.
pub fn field(text: &str) -> String {
    if text.starts_with(FORMULA) {
        format!("\"'{}\"", text.replace('"', "\"\""))
    } else if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_quotes_survive() {
        assert_eq!(field("f(int)"), "f(int)");
        assert_eq!(field("f<a, \"b\">"), "\"f<a, \"\"b\"\">\"");
    }

    #[test]
    fn a_name_is_no_formula() {
        assert_eq!(field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        for first in FORMULA {
            assert_eq!(field(&format!("{first}f")), format!("\"'{first}f\""));
        }
        assert_eq!(field("operator-(a)"), "operator-(a)");
    }
}
