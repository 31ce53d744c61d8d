//! Names of the first report as the second one has them: files of another folder, and functions
//! that were renamed.

use crate::cli::Replaced;
use present::order::map_of;
use std::collections::{BTreeMap, BTreeSet};

/// A path, with the first mapping that fits: that of the path itself or of a folder above it.
pub(in crate::command) fn path(path: &str, mappings: &[Replaced]) -> String {
    let mapped = mappings.iter().find_map(|mapping| {
        let rest = path.strip_prefix(mapping.old.as_str())?;
        let is_whole = rest.is_empty() || rest.starts_with('/') || mapping.old.ends_with('/');
        is_whole.then(|| format!("{}{rest}", mapping.new))
    });
    mapped.unwrap_or_else(|| path.to_owned())
}

/// A name, with every mapping's text replaced.
pub(in crate::command) fn name(name: &str, mappings: &[Replaced]) -> String {
    mappings.iter().fold(name.to_owned(), |name, mapping| name.replace(&mapping.old, &mapping.new))
}

/// For files that only one report has: which file of the second report each file of the first one
/// is. It is the one with the same name and the most equal folders above it, if no other has as
/// many.
pub(in crate::command) fn moved<'a>(
    before: &BTreeSet<&'a str>,
    after: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let only = |own: &BTreeSet<&'a str>, other: &BTreeSet<&'a str>| own - other;
    let (old, new) = (only(before, after), only(after, before));
    let best = |path: &'a str, among: &BTreeSet<&'a str>| -> Option<&'a str> {
        let shared = |other: &&&str| shared_names(path, other);
        let most = among.iter().map(|other| shared(&other)).max().filter(|most| *most > 0)?;
        let mut found = among.iter().filter(|other| shared(other) == most);
        found.next().filter(|_| found.next().is_none()).copied()
    };
    // Both must choose each other, so that no file is two files.
    let pairs = old.iter().filter_map(|path| {
        let other = best(path, &new)?;
        (best(other, &old)? == *path).then_some((*path, other))
    });
    map_of(pairs)
}

/// How many names two paths share, from the last one on.
fn shared_names(one: &str, other: &str) -> usize {
    one.rsplit('/').zip(other.rsplit('/')).take_while(|(one, other)| one == other).count()
}

/// A sentence for each pair of folders that were taken for each other.
pub(in crate::command) fn notes(moved: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut folders = BTreeMap::<(&str, &str), usize>::new();
    for (old, new) in moved {
        let shared: usize = old.rsplit('/').take(shared_names(old, new)).map(|name| name.len() + 1).sum();
        let cut = |path: &str| path.len().saturating_sub(shared);
        *folders.entry((&old[..cut(old)], &new[..cut(new)])).or_default() += 1;
    }
    let sentence = |((old, new), files): ((&str, &str), usize)| {
        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        format!("note: {files} of {old} compared with those of {new}; --map-path OLD=NEW decides otherwise")
    };
    folders.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(old: &str, new: &str) -> Replaced {
        Replaced { old: old.into(), new: new.into() }
    }

    #[test]
    fn folders_are_mapped_whole() {
        let mappings = [replaced("/a/b", "/c"), replaced("/a/", "/d/")];
        let mapped = |text| path(text, &mappings);
        assert_eq!(mapped("/a/b/x.c"), "/c/x.c");
        assert_eq!(mapped("/a/b"), "/c");
        assert_eq!(mapped("/a/bc/x.c"), "/d/bc/x.c");
        assert_eq!(mapped("/e/a/b"), "/e/a/b");
        assert_eq!(name("old::f<old::T>", &[replaced("old::", "new::")]), "new::f<new::T>");
    }

    #[test]
    fn files_of_another_checkout_are_found_if_nothing_else_is_as_near() {
        let before =
            BTreeSet::from(["/one/src/a.c", "/one/src/b.c", "/one/x/mod.rs", "/one/y/mod.rs", "/lib/l.c"]);
        let after = BTreeSet::from(["/two/src/a.c", "/two/src/b.c", "/two/z/mod.rs", "/lib/l.c"]);
        let found = moved(&before, &after);
        assert_eq!(
            found,
            BTreeMap::from([("/one/src/a.c", "/two/src/a.c"), ("/one/src/b.c", "/two/src/b.c")])
        );
        let said = notes(&found);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("note: 2 files of /one compared with those of /two;"), "{said:?}");
    }
}
