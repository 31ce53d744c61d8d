//! Kept translations that this run has not verified yet.
//!
//! ```text
//!                 a module of the group             every module of the group: text, same file,
//!                 is executed                       same addresses, same bytes?
//!    Unverified ─────────────────────▶ revalidate ──┬── yes ──▶ Verified  they enter the map
//!                                                   └── no ───▶ GivenUp   nothing leads to them
//! ```
//!
//! All modules of a group get the same verdict, because direct branches lead from one to another
//! (`store::parts`). The fragments of a group that was given up stay in the cache's tables, because
//! the code names other entries by their numbers, but they never enter the map.

use crate::code::hash::hash;
use crate::target::memory;
use crate::target::own_pages::{self, FileState};
use std::collections::HashMap;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The address of a page of code, and the hash of its bytes when it was translated.
pub(crate) type PageHash = (u64, u64);

/// Pages of which it is known that a file, in this state, has bytes with these hashes.
#[derive(Clone, Debug)]
pub(crate) struct PagesOfFile {
    file: FileState,
    pages: Vec<PageHash>,
}

/// The state of a module's part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// The file has no fragments of the module.
    Absent,
    /// This run has not executed the module yet.
    Unverified,
    /// The module's fragments were verified and are in use.
    Verified,
    /// The module, or another one of its group, differs from the code that was translated.
    GivenUp,
}

/// Restored translations; lists are indexed by the number of the module.
#[derive(Default)]
pub(crate) struct UnverifiedModules {
    /// Pages that were translated, in order; verified modules keep theirs.
    pub(crate) pages: Vec<Vec<PageHash>>,
    /// The restored fragments of each module.
    pub(super) live: Vec<Vec<u32>>,
    pub(super) states: Vec<Verification>,
    /// The group of each module.
    pub(super) groups: Vec<u32>,
    /// The number of restored fragments, verified or not.
    pub(crate) fragments: usize,
    /// Whether a group was given up.
    pub(crate) gave_up: bool,
    /// By module, what an earlier process of the run has shown of the module's file.
    pub(crate) of_files: HashMap<u32, PagesOfFile>,
}

impl UnverifiedModules {
    /// Restored translations of which nothing is verified yet; `groups` holds the group of each
    /// module.
    pub(crate) fn new(
        groups: Vec<u32>,
        pages: Vec<Vec<PageHash>>,
        live: Vec<Vec<u32>>,
        fragments: usize,
    ) -> UnverifiedModules {
        let state =
            |live: &Vec<u32>| if live.is_empty() { Verification::Absent } else { Verification::Unverified };
        let states = live.iter().map(state).collect();
        UnverifiedModules { pages, live, states, groups, fragments, gave_up: false, of_files: HashMap::new() }
    }

    /// Makes the modules unverified that were verified, for the next process of the program.
    pub(crate) fn begin_again(&mut self) {
        debug_assert!(!self.gave_up);
        let verified = self.states.iter_mut().filter(|state| **state == Verification::Verified);
        verified.for_each(|state| *state = Verification::Unverified);
    }

    /// Whether the module has restored fragments that were not verified yet.
    pub(crate) fn is_unverified(&self, module: u32) -> bool {
        self.states.get(module as usize) == Some(&Verification::Unverified)
    }

    /// The unverified modules, with their fragments.
    pub(crate) fn modules(&self) -> impl Iterator<Item = (usize, &[u32])> {
        (0..self.states.len())
            .filter(|&module_index| self.is_unverified(module_index as u32))
            .map(|module_index| (module_index, &self.live[module_index][..]))
    }
}

/// Whether the memory of process `pid` holds pages with these hashes, of a module whose file is in
/// state `file`. Pages that an earlier process has shown to be the file's are not read again, as
/// long as the file is in the same state and this process has made no copies of them.
pub(super) fn holds_of_file(
    pid: i32,
    pages: &[PageHash],
    file: Option<FileState>,
    known: &mut Option<PagesOfFile>,
) -> bool {
    let Some(file) = file.filter(|_| own_pages::are_of_files(pid, pages.iter().map(|page| page.0))) else {
        return holds(pid, pages);
    };
    let former = known.take().filter(|known| known.file == file);
    let former = former.map_or_else(Vec::new, |known| known.pages);
    let is_new = |page: &&PageHash| former.binary_search(page).is_err();
    let new: Vec<PageHash> = pages.iter().filter(is_new).copied().collect();
    let same = holds(pid, &new);
    *known = same.then(|| PagesOfFile { file, pages: pages.to_vec() });
    same
}

/// Whether the memory of process `pid` holds pages with these hashes.
pub(super) fn holds(pid: i32, pages: &[PageHash]) -> bool {
    const RUN_PAGES: usize = 16;
    let mut buffer = vec![0u8; RUN_PAGES * PAGE as usize];
    let mut rest = pages;
    while let Some(&(start, _)) = rest.first() {
        // Adjacent pages are read by one call, up to the size of the buffer.
        let run = rest
            .iter()
            .zip(0u64..)
            .take(RUN_PAGES)
            .take_while(|((page, _), index)| *page == start + index * PAGE)
            .count();
        let bytes = &mut buffer[..run * PAGE as usize];
        if memory::read_target(pid, start, bytes) != bytes.len() {
            return false;
        }
        // Every page must have the bytes that were translated.
        let same = |(bytes, (_, expected)): (&[u8], &PageHash)| hash(bytes, 0) == *expected;
        if !bytes.chunks_exact(PAGE as usize).zip(&rest[..run]).all(same) {
            return false;
        }
        rest = &rest[run..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn pages_of_a_file_are_read_once_for_each_state_of_the_file() {
        let pid = std::process::id() as i32;
        let states = ["/bin/sh", "/proc/self/exe", "/bin/cat"].map(|path| FileState::of(Path::new(path)));
        let states: Vec<FileState> = states.into_iter().flatten().collect();
        let text = holds_of_file as *const () as u64 & !(PAGE - 1);
        let written = std::hint::black_box(vec![1u8; 3 * PAGE as usize]);
        let copied = (written.as_ptr() as u64).next_multiple_of(PAGE);
        if states.len() < 2 || !own_pages::are_of_files(pid, [text].into_iter()) {
            eprintln!("skipped: this system does not say which pages are a file's");
            return;
        }
        let mut bytes = vec![0u8; PAGE as usize];
        assert_eq!(memory::read_target(pid, text, &mut bytes), bytes.len());
        let (right, wrong) = ((text, hash(&bytes, 0)), (text, !hash(&bytes, 0)));
        let mut known = None;
        assert!(!holds_of_file(pid, &[wrong], Some(states[0]), &mut known) && known.is_none());
        assert!(holds_of_file(pid, &[right], Some(states[0]), &mut known));
        assert_eq!(known.as_ref().map(|known| &known.pages[..]), Some(&[right][..]));
        // A wrong hash is found out only where the page is read, so these show which pages are.
        let claim = || Some(PagesOfFile { file: states[0], pages: vec![wrong] });
        assert!(holds_of_file(pid, &[wrong], Some(states[0]), &mut claim()), "the file is the same");
        assert!(!holds_of_file(pid, &[wrong], Some(states[1]), &mut claim()), "the file has changed");
        assert!(!holds_of_file(pid, &[wrong], None, &mut claim()), "nothing is known of the file");
        let mut claim = Some(PagesOfFile { file: states[0], pages: vec![(copied, 0)] });
        assert!(!holds_of_file(pid, &[(copied, 0)], Some(states[0]), &mut claim), "the page is a copy");
    }
}
