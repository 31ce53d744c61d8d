//! Compiled expressions, kept by their patterns.
//!
//! A function is called once for each batch of some thousand rows, by several threads, always with
//! the same pattern: what it compiled is kept in the function. A pattern that is refused is kept as
//! such, so that DataFusion's own function answers without another attempt.

use lightfoot_pattern::column::ColumnRegex;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Patterns that a function keeps; a query has one for each call in it.
const MOST_PATTERNS: usize = 256;
/// Threads whose clones are kept; threads that ended leave theirs behind.
const MOST_THREADS: usize = 1024;

/// The pattern that DataFusion makes of a pattern and flags.
pub(crate) fn with_flags(pattern: &str, flags: Option<&str>) -> String {
    match flags {
        Some(flags) => format!("(?{flags}){pattern}"),
        None => pattern.to_owned(),
    }
}

/// Expressions by their patterns, shared by the functions of a session.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    expressions: Arc<Mutex<HashMap<String, Option<Clones>>>>,
}

/// One expression, cloned for each thread: clones share programs, and each has room of its own to
/// search in.
struct Clones {
    first: ColumnRegex,
    by_thread: HashMap<ThreadId, Arc<ColumnRegex>>,
}

impl Cache {
    /// The expression of a pattern for this thread; `None` where DataFusion's own function has to
    /// answer.
    pub(crate) fn get(&self, pattern: &str) -> Option<Arc<ColumnRegex>> {
        let mut expressions = self.expressions.lock().unwrap_or_else(PoisonError::into_inner);
        if expressions.len() >= MOST_PATTERNS && !expressions.contains_key(pattern) {
            expressions.clear();
        }
        if !expressions.contains_key(pattern) {
            let clones =
                ColumnRegex::for_strings(pattern).map(|first| Clones { first, by_thread: HashMap::new() });
            expressions.insert(pattern.to_owned(), clones);
        }
        let Clones { first, by_thread } = expressions.get_mut(pattern)?.as_mut()?;
        if by_thread.len() >= MOST_THREADS {
            by_thread.clear();
        }
        let own = by_thread.entry(thread::current().id()).or_insert_with(|| Arc::new(first.clone()));
        Some(own.clone())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.expressions.lock().unwrap().len()
    }
}

/// What is kept changes no answer: functions with different caches are equal.
impl PartialEq for Cache {
    fn eq(&self, _: &Cache) -> bool {
        true
    }
}

impl Eq for Cache {}

impl Hash for Cache {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_once() {
        let cache = Cache::default();
        let first = cache.get("[0-9]+").unwrap();
        assert!(Arc::ptr_eq(&first, &cache.clone().get("[0-9]+").unwrap()));
        let elsewhere = std::thread::spawn({
            let cache = cache.clone();
            move || cache.get("[0-9]+").unwrap()
        });
        assert!(!Arc::ptr_eq(&first, &elsewhere.join().unwrap()));
        assert_eq!(cache.len(), 1);
        for pattern in 0..2 * MOST_PATTERNS {
            assert!(cache.get(&pattern.to_string()).is_some());
            assert!(cache.len() <= MOST_PATTERNS);
        }
    }

    #[test]
    fn what_regex_refuses_is_refused() {
        for pattern in ["(", r"(?-u:\xff)", "(?)a", r"(\pL{1000}){1000}", "a{1001,1000}", r"(a)\1"] {
            assert!(regex::Regex::new(pattern).is_err(), "{pattern}");
            assert!(Cache::default().get(pattern).is_none(), "{pattern}");
        }
    }
}
