//! Finds the functions and variables that a user's name denotes.
//!
//! **What.** A name denotes all functions that have it: all static functions of that name, all
//! instances of a generic, all overloads. One metric counts them together. `NAME@*` makes a metric
//! of each; `FILE!NAME` searches one library or source file. **Why this way.** Users who count the
//! calls of a function do not know how many copies of it the compiler made. A number without some
//! of the copies would be wrong, and nothing would show it. **Leaves out** the source file of a
//! global function: symbol tables state it for local ones only.

use super::metric::{matches, Named, Which};
use super::target::{MetricTarget, Scope, Targets};
use anyhow::{bail, Result};
use present::order::set_of;
use std::collections::{BTreeMap, BTreeSet};
use symbol::{may_include, Kind, Spellings};

/// The most functions that a note lists.
const LISTED_MAX: usize = 4;

/// A function or variable that has the name.
#[derive(Clone, Debug)]
struct Match {
    address: u64,
    size_bytes: u64,
    kind: Kind,
    /// The spelling that matched.
    label: String,
    symbol: String,
    source: Option<String>,
}

impl Targets {
    /// Adds a metric of the functions of a name, or one for each.
    pub(super) fn functions(&mut self, named: &Named) -> Result<()> {
        let scope = self.scope(named)?;
        let is = |kind| matches!(kind, Kind::Function | Kind::Indirect);
        for &file in &scope.files {
            let found = self.matches(file, &scope, is, |name| exact(name, &named.name));
            if found.is_empty() {
                continue;
            }
            let functions: Vec<Match> =
                found.iter().filter(|one| one.kind == Kind::Function).cloned().collect();
            // If a name also has an indirect function, programs do not call an older version of it.
            if let Some(one) = found.iter().find(|one| one.kind == Kind::Indirect) {
                return indirect(&one.symbol);
            }
            return self.add_functions(named, file, functions);
        }
        if named.is_pattern() {
            return self.pattern(named, &scope);
        }
        let known = self.file_names(&scope.files);
        bail!("there is no function {named} in {known}{}", self.hint("fn", named, &scope, is))
    }

    /// Adds a metric of the variables of a name.
    pub(super) fn variable(&mut self, named: &Named) -> Result<()> {
        let scope = self.scope(named)?;
        let is = |kind| kind == Kind::Variable;
        for &file in &scope.files {
            let mut found = self.matches(file, &scope, is, |name| exact(name, &named.name));
            found.retain(|one| one.size_bytes > 0);
            let chosen = self.chosen("var", named, file, found)?;
            if chosen.is_empty() {
                continue;
            }
            for (name, found) in chosen {
                let ranges = found.iter().map(|one| one.address..one.address + one.size_bytes);
                let ranges = ranges.collect();
                self.add(name, MetricTarget::Data { file, ranges });
            }
            return Ok(());
        }
        let known = self.file_names(&scope.files);
        bail!("there is no variable {named} in {known}{}", self.hint("var", named, &scope, is))
    }

    /// Adds a metric for each spelling that matches; without a file a pattern applies to the
    /// program only.
    fn pattern(&mut self, named: &Named, scope: &Scope) -> Result<()> {
        let files = if named.library.is_some() { &scope.files[..] } else { &scope.files[..1] };
        let before = self.columns.len();
        for &file in files {
            let accepts = |name: &symbol::Named| {
                let spellings = Spellings::of(&name.name);
                Some(spellings.find(|spelling| matches(&named.name, spelling))?.to_owned())
            };
            let mut groups: Vec<(String, Vec<Match>)> = Vec::new();
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for one in self.matches(file, scope, |kind| kind == Kind::Function, accepts) {
                let place = *places.entry(one.label.clone()).or_insert(groups.len());
                if place == groups.len() {
                    groups.push((one.label.clone(), Vec::new()));
                }
                groups[place].1.push(one);
            }
            for (name, found) in groups {
                let full = Named { name, ..named.clone() };
                self.add_functions(&full, file, found)?;
            }
        }
        if self.columns.len() == before {
            bail!("no function of {} matches {}", self.file_names(files), named.name);
        }
        Ok(())
    }

    fn add_functions(&mut self, named: &Named, file: usize, found: Vec<Match>) -> Result<()> {
        for (name, found) in self.chosen("fn", named, file, found)? {
            let addresses = found.iter().map(|one| one.address).collect();
            self.add(name, MetricTarget::Code { file, addresses });
        }
        Ok(())
    }

    /// The metrics of the functions that have a name: one of all, one of each, or the one at an
    /// address.
    fn chosen(
        &mut self,
        kind: &str,
        named: &Named,
        file: usize,
        found: Vec<Match>,
    ) -> Result<Vec<(String, Vec<Match>)>> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let metric = format!("{kind}:{named}");
        match named.which {
            Which::All if found.len() == 1 => Ok(vec![(metric, found)]),
            // Several functions of one name count together, as a user expects who does not know of
            // the copies. The note says so, because the sum may be unexpected.
            Which::All => {
                let listed = list(named, &found);
                let (count, file) = (found.len(), self.file_names(&[file]));
                self.notes.push(format!(
                    "{metric} counts {count} places of that name in {file} ({listed}): {metric}@* has a metric for each"
                ));
                Ok(vec![(metric, found)])
            }
            Which::Each => {
                let name = |one: &Match| format!("{kind}:{}", apart(named, one, &found));
                Ok(found.iter().map(|one| (name(one), vec![one.clone()])).collect())
            }
            // An address tells functions of one name apart. It is that of one build: in another, no
            // function of that name may begin there.
            Which::At(address) => {
                let at = found.iter().find(|one| one.address == address);
                let Some(at) = at else {
                    bail!("{metric} is not there: that name is at {}", list(named, &found));
                };
                Ok(vec![(metric, vec![at.clone()])])
            }
        }
    }

    /// The names of a file that `accepts` accepts: each address once, sorted.
    fn matches(
        &self,
        file: usize,
        scope: &Scope,
        is: impl Fn(Kind) -> bool,
        accepts: impl Fn(&symbol::Named) -> Option<String>,
    ) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        for name in &self.files[file].names {
            if !is(name.kind) || !scope.holds(name) {
                continue;
            }
            let Some(label) = accepts(name) else { continue };
            if found.last().is_some_and(|last| last.address == name.address) {
                continue;
            }
            let symbol::Named { address, size_bytes, kind, name: symbol, source } = name.clone();
            found.push(Match { address, size_bytes, kind, label, symbol, source });
        }
        found
    }

    /// A suggestion for a name that does not exist.
    fn hint(&self, kind: &str, named: &Named, scope: &Scope, is: impl Fn(Kind) -> bool) -> String {
        let all = Scope { files: (0..self.files.len()).collect(), source: None };
        let full = |file: usize, name: &str| format!("{kind}:{}!{name}", self.file_names(&[file]));
        let others = all.files.iter().filter(|file| named.library.is_some() || scope.files.contains(file));
        let has =
            |&&file: &&usize| !self.matches(file, &all, &is, |name| exact(name, &named.name)).is_empty();
        if let Some(&file) = others.clone().find(has) {
            return format!(": did you mean {}?", full(file, &named.name));
        }
        for &file in scope.files.iter().chain(others) {
            let spelt = self.files[file].names.iter().filter(|name| is(name.kind));
            let spelt: BTreeSet<String> =
                set_of(spelt.map(|name| Spellings::of(&name.name).shortest().to_owned()));
            let suggestions = measure::counter::nearest(&named.name, spelt.iter().map(String::as_str));
            if !suggestions.is_empty() {
                let suggestions: Vec<String> = suggestions.into_iter().map(|name| full(file, name)).collect();
                return format!(": did you mean {}?", suggestions.join(" or "));
            }
        }
        format!(": {kind}:FILE!NAME looks in a library that is loaded later, or in one source file")
    }
}

/// The name, if it is one of the symbol's spellings.
fn exact(symbol: &symbol::Named, name: &str) -> Option<String> {
    let includes = may_include(&symbol.name, name) && Spellings::of(&symbol.name).include(name);
    includes.then(|| name.to_owned())
}

fn indirect(name: &str) -> Result<()> {
    bail!(
        "{name} is an indirect function (IFUNC): the processor decides which variant runs; name the variant (in a library with its symbol \
         table, a pattern such as *{name}* finds them)"
    )
}

/// A name that distinguishes this match from all others.
fn apart(named: &Named, one: &Match, all: &[Match]) -> String {
    let alike = |other: &&Match| other.source == one.source;
    match &one.source {
        Some(source) if named.library.is_none() && all.iter().filter(alike).count() == 1 => {
            format!("{source}!{}", one.label)
        }
        _ => Named { which: Which::At(one.address), ..named.clone() }.to_string(),
    }
}

fn list(named: &Named, found: &[Match]) -> String {
    let mut names: Vec<String> = found.iter().take(LISTED_MAX).map(|one| apart(named, one, found)).collect();
    if found.len() > LISTED_MAX {
        names.push(format!("{} more", found.len() - LISTED_MAX));
    }
    names.join(", ")
}
