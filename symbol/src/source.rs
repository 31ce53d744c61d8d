//! Source lines: frames with numbers, each with the frame into which it is inlined.
//!
//! The frames of an address, as a debugger shows them, form a chain from the innermost frame
//! outwards. Chains share their outer parts. So a [`SourceFrame`] has a file, a line, the inlined
//! function that the line belongs to, and the number of the frame into which that function is
//! inlined. Compilers emit line 0 or no file for code without a source; such code gets no frame and
//! counts as unknown.

use crate::numbers::Multiply;
use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};

/// The name that stands for an unknown file.
pub const UNKNOWN: &str = "???";

/// A frame: a source line, and the frame into which its function is inlined. All numbers are those
/// of [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceFrame {
    /// Index into [`Sources::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Index into [`Sources::names`] of the function that the line belongs to; `None` unless that
    /// function is inlined.
    pub inlined: Option<u32>,
    /// Number of the frame of the call that was inlined, in the next function outwards.
    pub caller: Option<u32>,
}

/// A frame as debug information describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
}

/// Values that get numbers in order, each value once.
#[derive(Clone, Debug)]
struct Interned<T, S = RandomState> {
    all: Vec<T>,
    numbers: HashMap<T, u32, S>,
}

impl<T, S: Default> Default for Interned<T, S> {
    fn default() -> Interned<T, S> {
        Interned { all: Vec::new(), numbers: HashMap::default() }
    }
}

impl<T: Clone + Eq + Hash, S: BuildHasher> Interned<T, S> {
    fn number(&mut self, thing: T) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(thing).or_insert_with_key(|thing| {
            self.all.push(thing.clone());
            next
        })
    }
}

/// All frames that were looked up.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Interned<String>,
    names: Interned<String>,
    frames: Interned<SourceFrame, BuildHasherDefault<Multiply>>,
    /// Number of the file that was added last: most addresses lie in the file of their predecessor.
    last_file: u32,
}

impl Sources {
    /// Paths of source files.
    pub fn files(&self) -> &[String] {
        &self.files.all
    }

    /// Mangled names of inlined functions.
    pub fn names(&self) -> &[String] {
        &self.names.all
    }

    /// The frame with this number.
    pub fn frame(&self, number: u32) -> SourceFrame {
        self.frames.all[number as usize]
    }

    /// The chain of frames from frame `number` outwards, beginning with that frame.
    pub fn chain(&self, number: u32) -> impl Iterator<Item = SourceFrame> + '_ {
        std::iter::successors(Some(self.frame(number)), |frame| frame.caller.map(|caller| self.frame(caller)))
    }

    fn file(&mut self, path: &str) -> u32 {
        if self.files.all.get(self.last_file as usize).is_none_or(|last| last != path) {
            self.last_file = self.files.number(path.to_owned());
        }
        self.last_file
    }

    /// Adds `frames`, which are ordered from the innermost outwards, and returns the number of the
    /// first; `None` if the first has no line.
    pub(crate) fn enter(&mut self, frames: &[Frame<'_>]) -> Option<u32> {
        let known = |frame: &Frame<'_>| frame.line.unwrap_or(0) > 0 && frame.file.is_some();
        frames.first().filter(|frame| known(frame))?;
        let mut caller = None;
        for (index, frame) in frames.iter().enumerate().rev() {
            let inlined = if index + 1 < frames.len() { frame.function.clone() } else { None };
            let entered = SourceFrame {
                file: self.file(frame.file.unwrap_or(UNKNOWN)),
                line: frame.line.unwrap_or(0),
                inlined: inlined.map(|name| self.names.number(name)),
                caller,
            };
            caller = Some(self.frames.number(entered));
        }
        caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32) -> Frame<'static> {
        Frame { function: Some(function.into()), file: Some("a.c"), line: Some(line) }
    }

    #[test]
    fn chains_share_their_outer_ends() {
        let mut sources = Sources::default();
        let first = sources.enter(&[frame("inner", 3), frame("outer", 10)]).unwrap();
        let second = sources.enter(&[frame("inner", 4), frame("outer", 10)]).unwrap();
        assert_ne!(first, second);
        assert_eq!(sources.frame(first).caller, sources.frame(second).caller);
        let chain: Vec<u32> = sources.chain(first).map(|frame| frame.line).collect();
        assert_eq!(chain, [3, 10]);
        assert_eq!(sources.names(), ["inner"]);
        assert_eq!(sources.enter(&[frame("inner", 3), frame("outer", 10)]), Some(first));
    }

    #[test]
    fn lies_make_no_frame() {
        let mut sources = Sources::default();
        assert_eq!(sources.enter(&[]), None);
        assert_eq!(sources.enter(&[frame("f", 0)]), None);
        assert_eq!(sources.enter(&[Frame { file: None, ..frame("f", 7) }]), None);
        // A call site that is not known leaves the inner line what it is.
        let number = sources.enter(&[frame("f", 7), Frame { line: None, ..frame("g", 0) }]).unwrap();
        assert_eq!(sources.frame(number).line, 7);
    }
}
