//! `lightfoot_extract`: what a group holds.

use crate::expression::Cache;
use crate::strings::{is_string, strings as to_array, view_parts, with_column, Rows};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::types::{logical_int64, logical_string, NativeType};
use datafusion::common::{exec_datafusion_err, exec_err, plan_err, Result, ScalarValue};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, TypeSignatureClass,
    Volatility,
};

/// What a group holds in the first match of a row: null for a null row, a row that does not match,
/// and a group that takes no part in the match.
///
/// Without a number it is group 1, or the whole match of a pattern without groups, which is what
/// `regexp_match(strings, pattern)[1]` says.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extract {
    signature: Signature,
    cache: Cache,
}

impl Extract {
    pub(crate) fn new(cache: &Cache) -> Extract {
        let string = || Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
        let number = Coercion::new_implicit(
            TypeSignatureClass::Native(logical_int64()),
            vec![TypeSignatureClass::Integer],
            NativeType::Int64,
        );
        let signatures = vec![
            TypeSignature::Coercible(vec![string(), string()]),
            TypeSignature::Coercible(vec![string(), string(), number]),
        ];
        Extract { signature: Signature::one_of(signatures, Volatility::Immutable), cache: cache.clone() }
    }
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        "lightfoot_extract"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &types[0] {
            DataType::Null => Ok(DataType::Null),
            found if is_string(found) => Ok(found.clone()),
            other => plan_err!("lightfoot_extract reads strings, not {other}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let is_scalar = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let strings = args.args[0].to_array(if is_scalar { 1 } else { rows })?;
        let extracted = match (&args.args[1], args.args.get(2)) {
            (ColumnarValue::Scalar(pattern), None) => self.extract(&strings, pattern, None),
            (ColumnarValue::Scalar(pattern), Some(ColumnarValue::Scalar(ScalarValue::Int64(group)))) => {
                match group {
                    Some(group) => self.extract(&strings, pattern, Some(*group)),
                    None => Ok(arrow::array::new_null_array(strings.data_type(), strings.len())),
                }
            }
            _ => exec_err!("lightfoot_extract takes one pattern and one group for all rows"),
        }?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&extracted, 0)?)),
            false => Ok(ColumnarValue::Array(extracted)),
        }
    }
}

impl Extract {
    fn extract(&self, strings: &ArrayRef, pattern: &ScalarValue, group: Option<i64>) -> Result<ArrayRef> {
        let Some(pattern) = pattern.try_as_str().flatten() else {
            return Ok(arrow::array::new_null_array(strings.data_type(), strings.len()));
        };
        let Some(expression) = self.cache.get(pattern) else {
            return by_regex(strings, pattern, group);
        };
        let group = number(group, expression.groups())?;
        if let Some(views) = strings.as_string_view_opt() {
            let spans = with_column(strings, Rows::Valid, |column| expression.group_spans(column, group))?;
            return view_parts(views, &spans.map_err(|error| exec_datafusion_err!("{error}"))?);
        }
        let extracted = with_column(strings, Rows::Valid, |column| expression.extract(column, group))?;
        to_array(extracted.map_err(|error| exec_datafusion_err!("{error}"))?, strings.data_type())
    }
}

/// The group that is asked for, of so many with the whole match.
fn number(group: Option<i64>, groups: usize) -> Result<usize> {
    let group = group.unwrap_or(i64::from(groups > 1));
    match usize::try_from(group) {
        Ok(number) if number < groups => Ok(number),
        _ => exec_err!("there is no group {group}; the expression has groups 0 to {}", groups - 1),
    }
}

/// The answer of the `regex` crate, for patterns that the other engine refuses.
fn by_regex(strings: &ArrayRef, pattern: &str, group: Option<i64>) -> Result<ArrayRef> {
    let regex = regex::Regex::new(pattern).map_err(|error| exec_datafusion_err!("{error}"))?;
    let group = number(group, regex.captures_len())?;
    let plain = cast(strings, &DataType::LargeUtf8)?;
    let rows = plain.as_string::<i64>().iter();
    let found = rows.map(|row| Some(regex.captures(row?)?.get(group)?.as_str()));
    let found: ArrayRef = std::sync::Arc::new(found.collect::<arrow::array::LargeStringArray>());
    Ok(cast(&found, strings.data_type())?)
}
