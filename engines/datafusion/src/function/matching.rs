//! `lightfoot_match`: whether a row matches.

use super::{call_own, column_and_constants, strings_signature};
use crate::expression::{with_flags, Cache};
use crate::strings::{booleans, with_column, Rows};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::regex::regexp_like;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};
use std::sync::Arc;

/// Whether a row matches: true, false, or null for a null row.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Match {
    signature: Signature,
    cache: Cache,
}

impl Match {
    pub(crate) fn new(cache: &Cache) -> Match {
        Match { signature: strings_signature(&[2, 3]), cache: cache.clone() }
    }
}

impl ScalarUDFImpl for Match {
    fn name(&self) -> &str {
        "lightfoot_match"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types[0] {
            DataType::Null => DataType::Null,
            _ => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some((strings, [Some(pattern), flags])) = column_and_constants::<2>(&args.args) {
            // `regexp_like` has no flag `g`, and says so.
            let flags_hold = flags.is_none_or(|flags| !flags.contains('g'));
            if let Some(expression) = self.cache.get(&with_flags(pattern, flags)).filter(|_| flags_hold) {
                let rows = with_column(strings, Rows::All, |column| expression.scan(column))?;
                return Ok(ColumnarValue::Array(Arc::new(booleans(&rows, strings.nulls()))));
            }
        }
        call_own(&regexp_like(), args)
    }
}
