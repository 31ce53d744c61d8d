//! `lightfoot_replace`: rows with matches replaced.

use super::{call_own, column_and_constants, strings_signature};
use crate::expression::{with_flags, Cache};
use crate::strings::{strings as to_array, view_merged, with_column, Rows};
use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::regex::regexp_replace;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};
use lightfoot_pattern::column::Occurrences;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A row with its first match replaced, or with all of them with flag `g`; null for a null row.
///
/// `\1` in the replacement stands for a group, as do `$1` and `${name}`; `\\` before digits is read
/// as one backslash, as DataFusion does.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replace {
    signature: Signature,
    cache: Cache,
}

impl Replace {
    pub(crate) fn new(cache: &Cache) -> Replace {
        Replace { signature: strings_signature(&[3, 4]), cache: cache.clone() }
    }
}

impl ScalarUDFImpl for Replace {
    fn name(&self) -> &str {
        "lightfoot_replace"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        regexp_replace().inner().return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some((strings, [Some(pattern), Some(by), flags])) = column_and_constants::<3>(&args.args) {
            let (pattern, occurrences) = pattern_and_occurrences(pattern, flags);
            if let Some(expression) = self.cache.get(&pattern) {
                let by = group_references(by);
                if let Some(views) = strings.as_string_view_opt() {
                    let replaced = with_column(strings, Rows::Valid, |column| {
                        expression.replace_matching(column, by.as_bytes(), occurrences)
                    })?;
                    return Ok(ColumnarValue::Array(view_merged(views, replaced)?));
                }
                let replaced = with_column(strings, Rows::Valid, |column| {
                    expression.replace(column, by.as_bytes(), occurrences)
                })?;
                return Ok(ColumnarValue::Array(to_array(replaced, strings.data_type())?));
            }
        }
        call_own(&regexp_replace(), args)
    }
}

/// The pattern with its flags, of which `g` asks for all matches.
pub(crate) fn pattern_and_occurrences(pattern: &str, flags: Option<&str>) -> (String, Occurrences) {
    match flags {
        None => (pattern.to_owned(), Occurrences::First),
        Some("g") => (pattern.to_owned(), Occurrences::All),
        Some(flags) => {
            let occurrences = match flags.contains('g') {
                true => Occurrences::All,
                false => Occurrences::First,
            };
            (with_flags(pattern, Some(&flags.replace('g', ""))), occurrences)
        }
    }
}

/// A replacement whose references to groups `\1` and `\\1` are `${1}`, by DataFusion's expression.
fn group_references(by: &str) -> Cow<'_, str> {
    static REFERENCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\\{1,2}(\d+)").expect("the expression is a constant"));
    REFERENCE.replace_all(by, "$${$1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_one_backslash_or_two() {
        assert_eq!(group_references(r"<\1\\12\x\>"), r"<${1}${12}\x\>");
        assert_eq!(group_references("$1 plain"), "$1 plain");
    }

    #[test]
    fn flag_g_is_for_all_matches() {
        assert_eq!(pattern_and_occurrences("a", None), ("a".to_owned(), Occurrences::First));
        assert_eq!(pattern_and_occurrences("a", Some("g")), ("a".to_owned(), Occurrences::All));
        assert_eq!(pattern_and_occurrences("a", Some("gi")), ("(?i)a".to_owned(), Occurrences::All));
        assert_eq!(pattern_and_occurrences("a", Some("s")), ("(?s)a".to_owned(), Occurrences::First));
    }
}
