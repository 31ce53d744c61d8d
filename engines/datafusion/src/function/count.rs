//! `lightfoot_count`: how many matches a row has.

use super::{call_own, column_and_constants, insert_number, strings_signature};
use crate::expression::{with_flags, Cache};
use crate::strings::{with_column, Rows};
use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::regex::regexp_count;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};
use std::sync::Arc;

/// The number of matches in a row, none overlapping; null for a null row.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    signature: Signature,
    cache: Cache,
}

impl Count {
    pub(crate) fn new(cache: &Cache) -> Count {
        Count { signature: strings_signature(&[2, 3]), cache: cache.clone() }
    }
}

impl ScalarUDFImpl for Count {
    fn name(&self) -> &str {
        "lightfoot_count"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some((strings, [Some(pattern), flags])) = column_and_constants::<2>(&args.args) {
            let flags = flags.filter(|flags| !flags.is_empty());
            // `regexp_count` has no flag `g`, and says so.
            let flags_hold = flags.is_none_or(|flags| !flags.contains('g'));
            if let Some(expression) = self.cache.get(&with_flags(pattern, flags)).filter(|_| flags_hold) {
                let counts = with_column(strings, Rows::Valid, |column| expression.match_counts(column))?;
                let counts: Vec<i64> = counts.into_iter().map(i64::from).collect();
                let counts = Int64Array::new(counts.into(), strings.nulls().cloned());
                return Ok(ColumnarValue::Array(Arc::new(counts)));
            }
        }
        insert_number(&mut args, 2, 1);
        call_own(&regexp_count(), args)
    }
}
