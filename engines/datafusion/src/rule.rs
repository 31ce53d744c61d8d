//! The rule that has plans search columns with these functions.
//!
//! It runs behind DataFusion's own rules, on what they left: `regexp_like` is an operator by then,
//! patterns that are strings are `LIKE`, and operands have one type. So an expression that is
//! rewritten gives the answer that the plan would have given, null rows included. Rewritten are
//!
//! | expression | becomes |
//! |---|---|
//! | `strings ~ 'p'`, `~*`, `!~`, `!~*`, `regexp_like(strings, 'p', 'flags')` | `lightfoot_match` |
//! | `LIKE`, `ILIKE` and their negations, where Arrow searches rather than compares | `lightfoot_match` |
//! | `regexp_count(strings, 'p'[, 1[, 'flags']])` | `lightfoot_count` |
//! | `regexp_replace(strings, 'p', 'by'[, 'flags'])` | `lightfoot_replace` |
//! | `regexp_match(strings, 'p')[1]` of a pattern with at most one group | `lightfoot_extract` |
//! | `strings <> ''` | `octet_length(strings) <> 0` |
//!
//! where the pattern is a literal that the engine takes. Queries over logs and web tables leave
//! out empty strings before they search, and Arrow compares each row's bytes with none: the C
//! library's `memcmp` reads 0 bytes behind a pointer to nothing, which costs a fault inside of the
//! processor, 80 ns on Zen 5. Lengths are differences of offsets.
//!
//! **Leaves out** comparisons at a row's beginning and `strings = ''`, which Parquet files answer
//! from their statistics, and columns of dictionaries.

use crate::expression::{with_flags, Cache};
use crate::function::{pattern_and_occurrences, Functions};
use crate::like::{self, LikeKind};
use crate::strings::is_string;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, Like, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{lit, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Rewrites searches of columns of strings.
#[derive(Debug)]
pub(crate) struct SearchRule {
    functions: Functions,
    cache: Cache,
}

impl SearchRule {
    pub(crate) fn new(functions: Functions, cache: Cache) -> SearchRule {
        SearchRule { functions, cache }
    }
}

impl OptimizerRule for SearchRule {
    fn name(&self) -> &str {
        "lightfoot_search"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = match &plan {
            LogicalPlan::TableScan(scan) => {
                DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
            }
            other => merge_schema(&other.inputs()),
        };
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let rewritten = expression.transform_up(|part| Ok(self.expression(part, &schema)))?;
            Ok(rewritten.update_data(|expression| name.restore(expression)))
        })
    }
}

impl SearchRule {
    /// An expression, rewritten if it is one of the table's.
    fn expression(&self, expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let rewritten = match &expression {
            Expr::BinaryExpr(binary) => self.operator(binary, schema),
            Expr::Like(like) => self.like(like, schema),
            Expr::ScalarFunction(call) => self.call(call, schema),
            _ => None,
        };
        match rewritten {
            Some(rewritten) => Transformed::yes(rewritten),
            None => Transformed::no(expression),
        }
    }

    fn operator(&self, binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
        let (flags, is_negated) = match binary.op {
            Operator::RegexMatch => (None, false),
            Operator::RegexIMatch => (Some("i"), false),
            Operator::RegexNotMatch => (None, true),
            Operator::RegexNotIMatch => (Some("i"), true),
            Operator::NotEq => return not_empty(binary, schema),
            _ => return None,
        };
        let pattern = with_flags(literal(&binary.right)?, flags);
        self.matching(&binary.left, &pattern, is_negated, schema)
    }

    fn like(&self, like: &Like, schema: &DFSchema) -> Option<Expr> {
        if like.escape_char.is_some_and(|escape| escape != '\\') {
            return None;
        }
        let pattern = literal(&like.pattern)?;
        if like::kind(pattern, like.case_insensitive) == LikeKind::Compared {
            return None;
        }
        self.matching(&like.expr, &like::expression(pattern, like.case_insensitive), like.negated, schema)
    }

    fn matching(&self, strings: &Expr, pattern: &str, is_negated: bool, schema: &DFSchema) -> Option<Expr> {
        self.searches(strings, pattern, schema)?;
        let call = self.functions.matching.call(vec![strings.clone(), lit(pattern)]);
        Some(if is_negated { Expr::Not(Box::new(call)) } else { call })
    }

    fn call(&self, call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
        use datafusion::functions::regex::{regexp_count, regexp_like, regexp_replace};
        let args = &call.args;
        let strings = args.first()?;
        if is(&call.func, &regexp_like()) {
            let flags = literal(args.get(2)?)?;
            let pattern = with_flags(literal(&args[1])?, Some(flags));
            return self.matching(strings, &pattern, false, schema).filter(|_| !flags.contains('g'));
        }
        if is(&call.func, &regexp_count()) {
            let starts_first = args.get(2).is_none_or(|start| *start == lit(1i64));
            let flags = match args.get(3) {
                Some(flags) => Some(literal(flags)?),
                None => None,
            };
            let pattern = with_flags(literal(args.get(1)?)?, flags.filter(|flags| !flags.is_empty()));
            self.searches(strings, &pattern, schema).filter(|()| starts_first)?;
            return Some(self.functions.count.call(vec![strings.clone(), lit(pattern)]));
        }
        if is(&call.func, &regexp_replace()) {
            let flags = match args.get(3) {
                Some(flags) => Some(literal(flags)?),
                None => None,
            };
            literal(args.get(2)?)?;
            let (pattern, _) = pattern_and_occurrences(literal(&args[1])?, flags);
            self.searches(strings, &pattern, schema)?;
            return Some(self.functions.replace.call(args.clone()));
        }
        self.first_group(call, schema)
    }

    /// The first element of `regexp_match`, which leaves out groups that take no part: of a pattern
    /// with one group or none it is that group or the match.
    fn first_group(&self, call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
        let [Expr::ScalarFunction(inner), index] = &call.args[..] else { return None };
        let is_element = call.func.name() == "array_element" && *index == lit(1i64);
        let [strings, pattern] = &inner.args[..] else { return None };
        if !is_element || !is(&inner.func, &datafusion::functions::regex::regexp_match()) {
            return None;
        }
        let pattern = literal(pattern)?;
        self.searches(strings, pattern, schema)?;
        // DataFusion answers an empty pattern with an empty string, as the engine does.
        let groups = self.cache.get(pattern)?.groups();
        (groups <= 2).then(|| self.functions.extract.call(vec![strings.clone(), lit(pattern)]))
    }

    /// Nothing but whether the engine searches an expression's column for a pattern.
    fn searches(&self, strings: &Expr, pattern: &str, schema: &DFSchema) -> Option<()> {
        // A literal is folded, or stands where a column was folded away.
        if matches!(strings, Expr::Literal(..)) || !is_string(&strings.get_type(schema).ok()?) {
            return None;
        }
        self.cache.get(pattern).map(|_| ())
    }
}

/// Whether a row is not empty, by its length: null for a null row, as the comparison is.
fn not_empty(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let strings = match (literal(&binary.left), literal(&binary.right)) {
        (None, Some("")) => &binary.left,
        (Some(""), None) => &binary.right,
        _ => return None,
    };
    let none = match strings.get_type(schema).ok()? {
        DataType::Utf8 | DataType::Utf8View => lit(0i32),
        DataType::LargeUtf8 => lit(0i64),
        _ => return None,
    };
    // A literal null is folded by the other rules.
    let is_literal = matches!(**strings, Expr::Literal(..));
    let length = datafusion::functions::string::octet_length().call(vec![Expr::clone(strings)]);
    (!is_literal).then(|| length.not_eq(none))
}

/// A string that is not null.
fn literal(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(value, _) => match value {
            ScalarValue::Utf8(_) | ScalarValue::LargeUtf8(_) | ScalarValue::Utf8View(_) => {
                value.try_as_str().flatten()
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a function is DataFusion's: a name alone may be somebody else's function.
fn is(function: &Arc<ScalarUDF>, own: &Arc<ScalarUDF>) -> bool {
    function == own
}
