//! Searches as functions of a column, for `Expr::map` of lazy queries.
//!
//! Polars calls such a function with each part of a column that it works on, from several threads.
//! The functions here own their pattern. What the resulting column's type is, Polars asks for
//! beside the function: `Boolean`, `UInt32`, or `String`.

use crate::{Occurrences, Pattern};
use polars_core::prelude::{Column, IntoColumn, PolarsResult};

impl Pattern {
    /// [`Pattern::is_match`] as a function of a column of strings; its result is `Boolean`.
    ///
    /// ```
    /// use lightfoot_polars::Pattern;
    /// use polars_core::prelude::*;
    /// // In a lazy query: col("url").map(has_id, |_, field| Ok(field.with_dtype(DataType::Boolean)))
    /// let has_id = Pattern::new("id=[0-9]+")?.match_function();
    /// let urls = Column::new("url".into(), ["/a?id=17", "/b"]);
    /// assert_eq!(has_id(urls)?, Column::new("url".into(), [true, false]));
    /// # Ok::<(), PolarsError>(())
    /// ```
    pub fn match_function(self) -> impl Fn(Column) -> PolarsResult<Column> + Send + Sync + 'static {
        move |column| Ok(self.is_match(column.str()?)?.into_column())
    }

    /// [`Pattern::count_matches`] as a function of a column of strings; its result is `UInt32`.
    pub fn count_function(self) -> impl Fn(Column) -> PolarsResult<Column> + Send + Sync + 'static {
        move |column| Ok(self.count_matches(column.str()?)?.into_column())
    }

    /// [`Pattern::extract`] as a function of a column of strings; its result is `String`.
    pub fn extract_function(
        self,
        group: usize,
    ) -> impl Fn(Column) -> PolarsResult<Column> + Send + Sync + 'static {
        move |column| Ok(self.extract(column.str()?, group)?.into_column())
    }

    /// [`Pattern::replace`] as a function of a column of strings; its result is `String`.
    pub fn replace_function(
        self,
        by: String,
        occurrences: Occurrences,
    ) -> impl Fn(Column) -> PolarsResult<Column> + Send + Sync + 'static {
        move |column| Ok(self.replace(column.str()?, &by, occurrences)?.into_column())
    }
}
