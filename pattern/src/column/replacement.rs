//! A replacement, read once: text, and the groups that stand in it.

use regex_automata::util::interpolate;

/// What a match is replaced by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(Vec<u8>),
    Group(usize),
}

impl Replacement {
    /// Reads `$1`, `${name}` and `$$` as the `regex` crate does.
    pub(super) fn new(text: &[u8], index: impl Fn(&str) -> Option<usize>) -> Replacement {
        let (mut parts, mut read) = (Vec::new(), Vec::new());
        let group = |group: usize, read: &mut Vec<u8>| {
            // What was read so far is text in front of the group.
            parts.push(Part::Text(std::mem::take(read)));
            parts.push(Part::Group(group));
        };
        interpolate::bytes(text, group, index, &mut read);
        parts.push(Part::Text(read));
        parts.retain(|part| *part != Part::Text(Vec::new()));
        Replacement { parts }
    }

    /// Whether a group stands in it.
    pub(super) fn has_groups(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Group(_)))
    }

    /// Appends what a match is replaced by, of whose groups `group` gives the bytes.
    pub(super) fn append<'t>(&self, out: &mut Vec<u8>, group: impl Fn(usize) -> Option<&'t [u8]>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Group(number) => out.extend_from_slice(group(*number).unwrap_or(&[])),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_text_are_told_apart() {
        let index = |name: &str| (name == "host").then_some(3);
        let parts = |text: &str| Replacement::new(text.as_bytes(), index).parts;
        let text = |text: &str| Part::Text(text.as_bytes().to_vec());
        assert_eq!(parts("a$1-${host}$$"), [text("a"), Part::Group(1), text("-"), Part::Group(3), text("$")]);
        assert_eq!(parts("$nobody."), [text(".")]);
        assert_eq!(parts(""), []);
        assert!(!Replacement::new(b"$$1", index).has_groups());
        let mut out = Vec::new();
        Replacement::new(b"<$1|$2>", index).append(&mut out, |group| (group == 1).then_some(&b"x"[..]));
        assert_eq!(out, b"<x|>");
    }
}
