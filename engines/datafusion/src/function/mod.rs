//! The functions: whether a row matches, how often, what a group holds, and rows with matches
//! replaced.
//!
//! | function | is |
//! |---|---|
//! | `lightfoot_match(strings, pattern[, flags])` | `regexp_like(strings, pattern[, flags])` |
//! | `lightfoot_count(strings, pattern[, flags])` | `regexp_count(strings, pattern, 1[, flags])` |
//! | `lightfoot_extract(strings, pattern[, group])` | a group of the first match |
//! | `lightfoot_replace(strings, pattern, by[, flags])` | `regexp_replace(strings, pattern, by[, flags])` |
//!
//! A pattern that is one for all rows, as a literal is, is searched for in the column where it
//! lies. Everything else is DataFusion's own function: patterns that differ by row, patterns that
//! are refused, and calls without a column.

mod count;
mod extract;
mod matching;
mod replace;

use count::Count;
use extract::Extract;
use matching::Match;
pub(crate) use replace::pattern_and_occurrences;
use replace::Replace;

use crate::expression::Cache;
use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion::common::types::logical_string;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, ScalarFunctionArgs, ScalarUDF, Signature, TypeSignature, TypeSignatureClass,
    Volatility,
};
use std::sync::Arc;

/// Strings of any type, so many as one of `counts` says.
fn strings_signature(counts: &[usize]) -> Signature {
    let string = || Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
    let signatures =
        counts.iter().map(|&count| TypeSignature::Coercible((0..count).map(|_| string()).collect()));
    Signature::one_of(signatures.collect(), Volatility::Immutable)
}

/// A string that is one for all rows and not null.
fn constant(value: &ColumnarValue) -> Option<&str> {
    match value {
        ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten(),
        ColumnarValue::Array(_) => None,
    }
}

/// A column, and what each further argument is for all rows: `None` where DataFusion's own function
/// has to be called. An argument that is left out is `None`.
fn column_and_constants<const N: usize>(args: &[ColumnarValue]) -> Option<(&ArrayRef, [Option<&str>; N])> {
    let (ColumnarValue::Array(strings), rest) = args.split_first()? else { return None };
    let mut constants = [None; N];
    for (value, place) in rest.iter().zip(&mut constants) {
        *place = Some(constant(value)?);
    }
    Some((strings, constants))
}

/// Calls DataFusion's own function, with all strings of the first one's type.
fn call_own(function: &ScalarUDF, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let own = args.args[0].data_type();
    for (value, field) in args.args.iter_mut().zip(&mut args.arg_fields) {
        if matches!(value.data_type(), DataType::Int64) || value.data_type() == own {
            continue;
        }
        *value = match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(cast(array, &own)?),
            ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar.cast_to(&own)?),
        };
        *field = Arc::new(Field::new(field.name(), own.clone(), true));
    }
    function.inner().invoke_with_args(args)
}

/// Adds a number behind an argument's place.
fn insert_number(args: &mut ScalarFunctionArgs, at: usize, number: i64) {
    args.args.insert(at, ColumnarValue::Scalar(ScalarValue::Int64(Some(number))));
    args.arg_fields.insert(at, Arc::new(Field::new("start", DataType::Int64, true)));
}

/// The functions of a session, which share what they compiled.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    pub(crate) matching: Arc<ScalarUDF>,
    pub(crate) count: Arc<ScalarUDF>,
    pub(crate) extract: Arc<ScalarUDF>,
    pub(crate) replace: Arc<ScalarUDF>,
}

impl Functions {
    pub(crate) fn new(cache: &Cache) -> Functions {
        Functions {
            matching: Arc::new(ScalarUDF::from(Match::new(cache))),
            count: Arc::new(ScalarUDF::from(Count::new(cache))),
            extract: Arc::new(ScalarUDF::from(Extract::new(cache))),
            replace: Arc::new(ScalarUDF::from(Replace::new(cache))),
        }
    }

    pub(crate) fn all(&self) -> [Arc<ScalarUDF>; 4] {
        [&self.matching, &self.count, &self.extract, &self.replace].map(Arc::clone)
    }
}
