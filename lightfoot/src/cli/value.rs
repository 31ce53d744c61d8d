//! Values that options of several commands take.

/// A text, and what stands in its place elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The text.
    pub old: String,
    /// What stands in its place.
    pub new: String,
}

impl Replaced {
    pub(super) fn parse(text: &str) -> Result<Replaced, String> {
        match text.split_once('=') {
            Some((old, new)) if !old.is_empty() => Ok(Replaced { old: old.into(), new: new.into() }),
            _ => Err(String::from("expected OLD=NEW")),
        }
    }
}

/// A number of rows.
pub(super) fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| String::from("expected 0 or more"))
}
