//! Which file of a crate imports from which other one, read from the text.
//!
//! A path is followed through `use`, through names of modules that `use` brought in, and through
//! re-exports to the file that defines the name; a path that cannot be followed further counts for
//! the last module that it names. Code under `#[cfg(test)]` does not count. A folder's `mod.rs` and
//! its files are one thing to those outside: what it takes from its own files, as a family's list
//! does from its members, is no import, while what they take from it is one. Left out: macros that
//! build paths, and `#[path]`; nothing here uses either.

use std::collections::{BTreeMap, BTreeSet};

/// A module's path below the crate, the root's being empty.
pub(crate) type Module = Vec<String>;

/// One crate's modules and what each imports.
pub(crate) struct Imports {
    /// For each module, the modules that it takes names from.
    pub(crate) of: BTreeMap<Module, BTreeSet<Module>>,
}

/// One name that a `use` brings in: its path as written, the name it gets, whether it is handed on.
struct Use {
    path: Vec<String>,
    name: String,
    exported: bool,
}

/// What the text of one file says.
struct Source {
    uses: Vec<Use>,
    /// Paths in the code outside `use`, at least two segments each.
    paths: Vec<Vec<String>>,
    /// Modules that the file declares for tests only.
    test_modules: Vec<String>,
}

impl Imports {
    /// Reads a crate from (path below `src` with its extension, code without comments and
    /// literals).
    pub(crate) fn read(files: &[(String, String)]) -> Imports {
        let mut sources: BTreeMap<Module, Source> =
            files.iter().map(|(path, code)| (module_of(path), read(code))).collect();
        let tests: Vec<Module> = sources
            .iter()
            .flat_map(|(module, source)| source.test_modules.iter().map(move |name| child(module, name)))
            .collect();
        sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        let house = House { sources: &sources };
        let of = sources.keys().map(|module| (module.clone(), house.imports(module))).collect();
        Imports { of }
    }

    /// Groups of modules that import each other, directly or by way of others, the largest first.
    pub(crate) fn circles(&self) -> Vec<Vec<Module>> {
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.of.keys().map(|module| (module, self.reachable(module))).collect();
        let mut circles: Vec<Vec<Module>> = Vec::new();
        for module in self.of.keys() {
            if circles.iter().any(|circle| circle.contains(module)) || !reach[module].contains(module) {
                continue;
            }
            let mutual = reach[module].iter().filter(|other| reach[**other].contains(module));
            circles.push(mutual.map(|other| (*other).clone()).collect());
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    fn reachable(&self, from: &Module) -> BTreeSet<&Module> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in &self.of[module] {
                if let Some((next, _)) = self.of.get_key_value(next) {
                    if found.insert(next) {
                        open.push(next);
                    }
                }
            }
        }
        found
    }
}

/// All files of a crate, to follow paths through.
struct House<'a> {
    sources: &'a BTreeMap<Module, Source>,
}

impl House<'_> {
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let source = &self.sources[module];
        let used = source.uses.iter().map(|item| &item.path).chain(&source.paths);
        let found = used.filter_map(|path| self.follow(module, path, 0));
        // A module that is named alone brings in nothing yet; what is taken from it is a path of
        // its own.
        let found = found.filter(|(_, item)| *item).map(|(target, _)| target);
        found.filter(|target| !target.starts_with(module)).collect()
    }

    /// The module that defines what a path in `module` names, and whether it names something in it.
    fn follow(&self, module: &Module, path: &[String], depth: usize) -> Option<(Module, bool)> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            name if self.sources.contains_key(&child(module, name)) => child(module, name),
            name => {
                let item = self.sources[module].uses.iter().find(|item| item.name == *name)?;
                let same = item.path.first().is_some_and(|word| word == name);
                if depth > 16 || rest.is_empty() || same {
                    return None;
                }
                let (target, is_item) = self.follow(module, &item.path, depth + 1)?;
                if is_item {
                    return Some((target, true));
                }
                target
            }
        };
        while rest.first().is_some_and(|word| word == "super") {
            at.pop();
            rest = &rest[1..];
        }
        self.below(at, rest, depth)
    }

    fn below(&self, mut at: Module, mut rest: &[String], depth: usize) -> Option<(Module, bool)> {
        while let Some((name, after)) = rest.split_first() {
            if name == "self" {
                rest = after;
                continue;
            }
            let inner = child(&at, name);
            if self.sources.contains_key(&inner) {
                at = inner;
                rest = after;
                continue;
            }
            let handed_on = self.sources.get(&at)?.uses.iter();
            let mut handed_on = handed_on.filter(|item| item.exported && (item.name == *name));
            if let Some(item) = handed_on.next().filter(|_| depth < 16) {
                if let Some((target, is_item)) = self.follow(&at, &item.path, depth + 1) {
                    return if is_item { Some((target, true)) } else { self.below(target, after, depth + 1) };
                }
            }
            return Some((at, true));
        }
        Some((at, false))
    }
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// `emit/mod.rs` and `emit.rs` are module `emit`, `lib.rs` and `main.rs` the root.
fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut words: Module = path.split('/').map(str::to_owned).collect();
    let last = words.last().map(String::as_str);
    if last == Some("mod") || (words.len() == 1 && matches!(last, Some("lib"))) {
        words.pop();
    }
    words
}

/// The tokens of code: words, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = if c.is_alphanumeric() || c == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        if !c.is_whitespace() {
            found.push(&rest[..length]);
        }
        at += length;
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn read(code: &str) -> Source {
    let mut source = Source { uses: Vec::new(), paths: Vec::new(), test_modules: Vec::new() };
    let all = tokens(code);
    let mut at = 0;
    while at < all.len() {
        if all[at..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = skip_item(&all, at + 7, &mut source.test_modules);
        } else if all[at] == "use" && (at == 0 || all[at - 1] != "::") {
            let exported = at > 0 && (all[at - 1] == "pub" || all[at - 1] == ")");
            at = tree(&all, at + 1, &mut Vec::new(), exported, &mut source.uses);
        } else if is_word(all[at]) && all.get(at + 1) == Some(&"::") && (at == 0 || all[at - 1] != "::") {
            let mut path = vec![all[at].to_owned()];
            while all.get(at + 1) == Some(&"::") && all.get(at + 2).is_some_and(|word| is_word(word)) {
                path.push(all[at + 2].to_owned());
                at += 2;
            }
            source.paths.push(path);
            at += 1;
        } else {
            at += 1;
        }
    }
    source
}

/// Steps over the item at `at`, up to its `;` or its closing brace.
fn skip_item(all: &[&str], mut at: usize, modules: &mut Vec<String>) -> usize {
    if let Some(start) = all[at..].iter().take(8).position(|token| *token == "mod") {
        if all.get(at + start + 2) == Some(&";") {
            modules.push(all[at + start + 1].to_owned());
        }
    }
    let mut depth = 0;
    while at < all.len() {
        match all[at] {
            "{" | "(" | "[" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" | ")" | "]" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Reads one tree of a `use` and returns where it ends.
fn tree(all: &[&str], mut at: usize, prefix: &mut Vec<String>, exported: bool, uses: &mut Vec<Use>) -> usize {
    let before = prefix.len();
    loop {
        match all.get(at).copied() {
            Some("::") => at += 1,
            Some("{") => {
                at += 1;
                while all.get(at).is_some_and(|token| *token != "}") {
                    at = tree(all, at, prefix, exported, uses);
                    at += usize::from(all.get(at) == Some(&","));
                }
                at += 1;
                break;
            }
            Some("as") => {
                let name = all.get(at + 1).copied().unwrap_or_default().to_owned();
                uses.push(Use { path: prefix.clone(), name, exported });
                at += 2;
                break;
            }
            Some(word) if is_word(word) || word == "*" => {
                prefix.push(word.to_owned());
                at += 1;
            }
            _ => {
                let mut path = prefix.clone();
                if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
                    path.pop();
                }
                let name = path.last().cloned().unwrap_or_default();
                uses.push(Use { path, name, exported });
                break;
            }
        }
    }
    prefix.truncate(before);
    at
}
