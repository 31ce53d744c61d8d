//! The directory: all lines that any core has touched, by their numbers.
//!
//! Neighbouring lines are found by one look-up: a page has the copies of its lines side by side,
//! and the page of the last look-up is at hand. Lines that a program touches one after the other
//! therefore cost no hash and no distant memory. The copies of a line lead to each other, so that
//! one that is alone is all that is read of its line.

use crate::copies::NONE;
use std::ops::{Index, IndexMut};
use symbol::ByNumber;

/// Lines of a page.
const PAGE_LINES: u64 = 64;

/// A line that was touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    /// The copy of the core that touched it first.
    pub(crate) copy: u32,
    /// Its index among the shared lines.
    pub(crate) shared: u32,
}

/// The lines, in the order in which they were touched first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    lines: Vec<Line>,
    /// For each line the copy of the core that touched it first.
    pages: Vec<[u32; PAGE_LINES as usize]>,
    page_numbers: ByNumber<u64, u32>,
    /// The number and the index of the page of the last look-up.
    last: Option<(u64, u32)>,
}

impl Directory {
    /// A copy of a line by its number; [`NONE`] if no core has touched it.
    pub(crate) fn copy(&mut self, number: u64) -> u32 {
        *self.place(number)
    }

    /// Enters a line that no core has touched, with its first copy; returns its index.
    pub(crate) fn enter(&mut self, number: u64, copy: u32) -> u32 {
        *self.place(number) = copy;
        self.lines.push(Line { number, copy, shared: NONE });
        self.lines.len() as u32 - 1
    }

    fn place(&mut self, number: u64) -> &mut u32 {
        let page = number / PAGE_LINES;
        let index = match self.last {
            Some((last, index)) if last == page => index,
            _ => self.page(page),
        };
        &mut self.pages[index as usize][(number % PAGE_LINES) as usize]
    }

    fn page(&mut self, page: u64) -> u32 {
        let pages = &mut self.pages;
        let index = *self.page_numbers.entry(page).or_insert_with(|| {
            pages.push([NONE; PAGE_LINES as usize]);
            pages.len() as u32 - 1
        });
        self.last = Some((page, index));
        index
    }

    /// Forgets the numbers of lines: what is touched from now on is another line. Indices stay.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
        self.page_numbers.clear();
        self.last = None;
    }
}

impl Index<u32> for Directory {
    type Output = Line;

    fn index(&self, line: u32) -> &Line {
        &self.lines[line as usize]
    }
}

impl IndexMut<u32> for Directory {
    fn index_mut(&mut self, line: u32) -> &mut Line {
        &mut self.lines[line as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_in_the_order_of_their_first_touch() {
        let mut directory = Directory::default();
        for (copy, (number, line)) in [(70, 0), (0, 1), (64, 2), (1 << 50, 3)].into_iter().enumerate() {
            assert_eq!(directory.copy(number), NONE);
            assert_eq!(directory.enter(number, copy as u32), line);
        }
        assert_eq!([0, 64, 1 << 50, 70].map(|number| directory.copy(number)), [1, 2, 3, 0]);
        assert_eq!((directory[2].number, directory[3].number), (64, 1 << 50));
        directory.forget();
        assert_eq!((directory.copy(0), directory.enter(0, 7), directory[0].number), (NONE, 4, 70));
    }
}
