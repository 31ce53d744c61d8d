//! A file tree that holds `sys` and `proc`: the root of this machine, or a recorded one in a test.
//! Missing files are `None`, never errors.

use std::path::{Path, PathBuf};

/// The root of such a tree.
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The file tree of this machine.
    pub(crate) fn root() -> Tree {
        Tree::at(Path::new("/"))
    }

    /// A recorded file tree below `root`.
    pub(crate) fn at(root: &Path) -> Tree {
        Tree { root: root.to_path_buf() }
    }

    /// The text of a file without surrounding white space.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_string())
    }

    /// The number that a file holds.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.join(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

/// The number of CPUs in a list such as `0-3,8`.
pub(crate) fn cpus(list: &str) -> u32 {
    let count = |range: &str| -> Option<u32> {
        let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    };
    list.split(',').filter_map(count).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::cpus;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0"), 1);
        assert_eq!(cpus("0-1"), 2);
        assert_eq!(cpus("0-3,8,10-11"), 7);
        assert_eq!(cpus(""), 0);
        assert_eq!(cpus("3-1,x,0-4294967295"), 0);
    }
}
