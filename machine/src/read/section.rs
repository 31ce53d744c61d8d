//! Reads the fields of one TOML table with their types, and reports errors with line and field.
//!
//! Reading a key marks it as known; [`Section::finish`] refuses all others. A missing key is
//! reported at the line of its table.

use crate::{Error, SliceMasks};
use std::ops::Range;
use std::str::FromStr;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Lines of the fields read so far, by path.
#[derive(Default)]
pub(super) struct Lines(Vec<(String, usize)>);

impl Lines {
    /// The line of the field, or else of the table that it belongs to.
    pub(super) fn of(&self, field: &str) -> Option<usize> {
        let of = |wanted: &str| self.0.iter().find(|(path, _)| path == wanted).map(|(_, line)| *line);
        of(field).or_else(|| of(field.rsplit_once('.')?.0))
    }
}

/// Parses the text into spanned tables.
pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Error> {
    DeTable::parse(text).map_err(|error| Error::Syntax {
        path: Default::default(),
        line: error.span().map_or(1, |span| line_at(text, &span)),
        reason: error.message().to_string(),
    })
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    1 + text.bytes().take(span.start).filter(|&byte| byte == b'\n').count()
}

/// A table, and the keys that have been read from it.
pub(super) struct Section<'a> {
    text: &'a str,
    name: &'static str,
    line: usize,
    table: &'a DeTable<'a>,
    keys_read: Vec<&'static str>,
}

type Found<'a> = Option<(&'a DeValue<'a>, usize)>;

impl<'a> Section<'a> {
    /// The top level of the document.
    pub(super) fn top(text: &'a str, table: &'a DeTable<'a>) -> Section<'a> {
        Section { text, name: "", line: 1, table, keys_read: Vec::new() }
    }

    fn field(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    fn error(&self, key: &str, line: usize, problem: String, expected: &str) -> Error {
        let (field, expected) = (self.field(key), expected.to_string());
        Error::Field { path: None, line: Some(line), field, problem, expected }
    }

    fn found(&mut self, key: &'static str) -> Found<'a> {
        self.keys_read.push(key);
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some((value.get_ref(), line_at(self.text, &value.span())))
    }

    fn must<T>(&self, key: &str, value: Option<T>, expected: &str) -> Result<T, Error> {
        value.ok_or_else(|| self.error(key, self.line, "is missing".into(), expected))
    }

    /// Reads an optional string.
    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>, Error> {
        match self.found(key) {
            None => Ok(None),
            Some((DeValue::String(text), _)) => Ok(Some(text.to_string())),
            Some((value, line)) => Err(self.error(key, line, shown(value), "a string")),
        }
    }

    /// Reads a required string.
    pub(super) fn required_text(&mut self, key: &'static str) -> Result<String, Error> {
        let text = self.text(key)?;
        self.must(key, text, "a string")
    }

    /// Reads an optional integer from `least` to `most`.
    pub(super) fn number(&mut self, key: &'static str, least: u64, most: u64) -> Result<Option<u64>, Error> {
        let Some((value, line)) = self.found(key) else { return Ok(None) };
        match integer(value) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.error(key, line, shown(value), &whole(least, most))),
        }
    }

    /// Reads a required integer from `least` to `most`.
    pub(super) fn required_number(&mut self, key: &'static str, least: u64, most: u64) -> Result<u64, Error> {
        let number = self.number(key, least, most)?;
        self.must(key, number, &whole(least, most))
    }

    /// Reads a required number with or without a fraction.
    pub(super) fn required_real(&mut self, key: &'static str) -> Result<f64, Error> {
        let expected = "a number such as 1.0";
        let found = self.found(key);
        let (value, line) = self.must(key, found, expected)?;
        let real = match value {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            _ => integer(value).map(|number| number as f64),
        };
        real.ok_or_else(|| self.error(key, line, shown(value), expected))
    }

    /// Reads a required size, in bytes or with a unit.
    pub(super) fn required_size(&mut self, key: &'static str) -> Result<u64, Error> {
        let expected = "bytes, or a size such as \"32K\"";
        let found = self.found(key);
        let (value, line) = self.must(key, found, expected)?;
        bytes(value).map_err(|problem| self.error(key, line, problem, expected))
    }

    /// Reads an optional list of sizes.
    pub(super) fn sizes(&mut self, key: &'static str) -> Result<Option<Vec<u64>>, Error> {
        let expected = "a list of sizes such as [4096, \"2M\"]";
        self.list(key, expected, bytes)
    }

    /// Reads an optional list of masks.
    pub(super) fn masks(&mut self, key: &'static str) -> Result<SliceMasks, Error> {
        let mask = |value: &DeValue<'_>| integer(value).ok_or_else(|| shown(value));
        let masks = self.list(key, SliceMasks::POSSIBLE, mask)?.unwrap_or_default();
        SliceMasks::new(&masks).map_err(|problem| {
            let line = self.found(key).map_or(self.line, |(_, line)| line);
            self.error(key, line, problem, SliceMasks::POSSIBLE)
        })
    }

    /// Reads an optional list of strings.
    pub(super) fn texts(&mut self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        let text = |value: &DeValue<'_>| value.as_str().map(str::to_string).ok_or_else(|| shown(value));
        self.list(key, "a list of strings", text)
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        item: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some((value, line)) = self.found(key) else { return Ok(None) };
        let Some(items) = value.as_array() else {
            return Err(self.error(key, line, shown(value), expected));
        };
        let mut list = Vec::new();
        for value in items.iter() {
            let line = line_at(self.text, &value.span());
            list.push(item(value.get_ref()).map_err(|problem| self.error(key, line, problem, expected))?);
        }
        Ok(Some(list))
    }

    /// Reads an optional word of `names` and returns its value.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        names: &[(&str, T)],
    ) -> Result<Option<T>, Error> {
        let Some((value, line)) = self.found(key) else { return Ok(None) };
        let chosen = names.iter().find(|(name, _)| value.as_str() == Some(name));
        match chosen {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(self.error(key, line, shown(value), &one_of(names))),
        }
    }

    /// Reads an optional word that its type understands; `expected` says what is possible.
    pub(super) fn word<T: FromStr<Err = String>>(
        &mut self,
        key: &'static str,
        expected: &str,
    ) -> Result<Option<T>, Error> {
        let Some((value, line)) = self.found(key) else { return Ok(None) };
        let read = value.as_str().ok_or_else(|| shown(value)).and_then(str::parse);
        read.map(Some).map_err(|problem: String| self.error(key, line, problem, expected))
    }

    /// Reads a required word of `names` and returns its value.
    pub(super) fn required_choice<T: Copy>(
        &mut self,
        key: &'static str,
        names: &[(&str, T)],
    ) -> Result<T, Error> {
        let chosen = self.choice(key, names)?;
        self.must(key, chosen, &one_of(names))
    }

    /// Reads a required number of ways, or a word that `word` understands.
    pub(super) fn required_ways(
        &mut self,
        key: &'static str,
        word: impl Fn(&str) -> Result<u32, String>,
    ) -> Result<u32, Error> {
        let expected = "a whole number, 1 or more, or \"full\"";
        let found = self.found(key);
        let (value, line) = self.must(key, found, expected)?;
        let ways = match value {
            DeValue::String(text) => word(text),
            _ => integer(value).and_then(|number| u32::try_from(number).ok()).ok_or_else(|| shown(value)),
        };
        match ways {
            Ok(0) => Err(self.error(key, line, "0".into(), expected)),
            Ok(ways) => Ok(ways),
            Err(problem) => Err(self.error(key, line, problem, expected)),
        }
    }

    /// Reads an optional table.
    pub(super) fn table(&mut self, key: &'static str) -> Result<Option<Section<'a>>, Error> {
        match self.found(key) {
            None => Ok(None),
            Some((DeValue::Table(table), line)) => Ok(Some(self.inner(key, table, line))),
            Some((value, line)) => Err(self.error(key, line, shown(value), &format!("a table [{key}]"))),
        }
    }

    /// Reads a list of tables, `[[key]]`; empty if there is none.
    pub(super) fn tables(&mut self, key: &'static str) -> Result<Vec<Section<'a>>, Error> {
        let expected = format!("tables [[{key}]]");
        let Some((value, line)) = self.found(key) else { return Ok(Vec::new()) };
        let Some(items) = value.as_array() else {
            return Err(self.error(key, line, shown(value), &expected));
        };
        let mut sections = Vec::new();
        for value in items.iter() {
            let line = line_at(self.text, &value.span());
            match value.get_ref() {
                DeValue::Table(table) => sections.push(self.inner(key, table, line)),
                value => return Err(self.error(key, line, shown(value), &expected)),
            }
        }
        Ok(sections)
    }

    fn inner(&self, name: &'static str, table: &'a DeTable<'a>, line: usize) -> Section<'a> {
        Section { text: self.text, name, line, table, keys_read: Vec::new() }
    }

    /// Refuses keys that were not read, and stores the lines of the others in `lines` under `path`.
    pub(super) fn finish(self, lines: &mut Lines, path: &str) -> Result<(), Error> {
        for (key, _) in self.table.iter() {
            let line = line_at(self.text, &key.span());
            let name = key.get_ref().as_ref();
            if !self.keys_read.contains(&name) {
                let expected = format!("one of {}", self.keys_read.join(", "));
                return Err(self.error(name, line, "is not a field".into(), &expected));
            }
            let field = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            lines.0.push((field, line));
        }
        lines.0.push((path.to_string(), self.line));
        Ok(())
    }
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

fn bytes(value: &DeValue<'_>) -> Result<u64, String> {
    match value {
        DeValue::String(text) => crate::geometry::bytes(text),
        _ => integer(value).ok_or_else(|| shown(value)),
    }
}

fn whole(least: u64, most: u64) -> String {
    format!("a whole number from {least} to {most}")
}

fn one_of<T>(names: &[(&str, T)]) -> String {
    names.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ")
}

/// The value as an error message shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(integer) => integer.as_str().to_string(),
        DeValue::Float(float) => float.as_str().to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        other => format!("a value of type {}", other.type_str()),
    }
}
