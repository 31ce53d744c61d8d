//! Regular expressions in DataFusion at the speed of memory.
//!
//! One call registers functions over columns of strings, and a rule that has plans use them:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::common::Result<()> {
//! use datafusion::prelude::SessionContext;
//!
//! let context = SessionContext::new();
//! lightfoot_datafusion::register(&context);
//! let rows = context.sql("SELECT url FROM (VALUES ('/a?id=7'), ('/b'), (NULL)) AS t(url) WHERE url ~ 'id=[0-9]'");
//! assert_eq!(rows.await?.count().await?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Which expressions
//!
//! `~`, `~*`, `!~`, `!~*`, `regexp_like`, `regexp_count`, `regexp_replace`, `LIKE` and `ILIKE`,
//! where the pattern is a literal; `EXPLAIN` shows `lightfoot_match` and its sisters in their
//! place, and `octet_length` in that of `<> ''`. The functions can be called by name, too: see
//! [`functions`]. Results are DataFusion's own, for `Utf8`, `LargeUtf8` and `Utf8View`, and null
//! rows stay null. Values are not copied: expressions run over an array's values where they lie,
//! many rows side by side (the crate `lightfoot-pattern`).
//!
//! A pattern is compiled once a session. What the engine refuses, patterns that differ by row, and
//! columns of dictionaries are left to DataFusion's own functions.
//!
//! **Leaves out** `regexp_instr`, and a `LIKE` that compares a row's beginning or end.

mod expression;
mod function;
mod like;
mod pages;
mod rule;
mod sorted;
mod strings;

pub use pages::{PageKey, SortedPages};
pub use sorted::SortedIndex;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;
use datafusion::optimizer::OptimizerRule;
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// The functions `lightfoot_match`, `lightfoot_count`, `lightfoot_extract`, `lightfoot_replace`.
///
/// | function | is |
/// |---|---|
/// | `lightfoot_match(strings, pattern[, flags])` | `regexp_like(strings, pattern[, flags])` |
/// | `lightfoot_count(strings, pattern[, flags])` | `regexp_count(strings, pattern, 1[, flags])` |
/// | `lightfoot_extract(strings, pattern[, group])` | a group of the first match, or null |
/// | `lightfoot_replace(strings, pattern, by[, flags])` | `regexp_replace(strings, pattern, by[, flags])` |
///
/// They share what they compiled: those of one call belong together.
pub fn functions() -> Vec<Arc<ScalarUDF>> {
    function::Functions::new(&expression::Cache::default()).all().to_vec()
}

/// The rule and its functions.
fn rule_and_functions() -> (Arc<dyn OptimizerRule + Send + Sync>, [Arc<ScalarUDF>; 4]) {
    let cache = expression::Cache::default();
    let functions = function::Functions::new(&cache);
    let all = functions.all();
    (Arc::new(rule::SearchRule::new(functions, cache)), all)
}

/// Registers the functions and the rule with a session.
pub fn register(context: &SessionContext) {
    let (rule, functions) = rule_and_functions();
    for function in functions {
        context.register_udf(ScalarUDF::clone(&function));
    }
    // One rule is enough, however often this is called.
    context.remove_optimizer_rule(rule.name());
    context.add_optimizer_rule(rule);
}

/// Adds the functions and the rule to a session's state that is being built, besides everything
/// that it has.
pub trait WithLightfoot {
    /// The builder with the functions and the rule.
    ///
    /// ```
    /// use datafusion::execution::session_state::SessionStateBuilder;
    /// use lightfoot_datafusion::WithLightfoot;
    /// let state = SessionStateBuilder::new().with_default_features().with_lightfoot().build();
    /// assert!(state.scalar_functions().contains_key("lightfoot_match"));
    /// ```
    fn with_lightfoot(self) -> Self;
}

impl WithLightfoot for SessionStateBuilder {
    fn with_lightfoot(mut self) -> SessionStateBuilder {
        let (rule, functions) = rule_and_functions();
        self.scalar_functions().get_or_insert_default().extend(functions);
        self.with_optimizer_rule(rule)
    }
}
