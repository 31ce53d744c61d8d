//! The marks around what a test or a cell of a notebook runs: `lightfoot cache --region python`
//! counts what lies between them. A mark is machine code with the region's name in it, so the name
//! is one for all; natively it costs a cycle.

use pyo3::prelude::*;

/// Opens the region `python` in this thread.
#[pyfunction]
pub(crate) fn region_begin() {
    lightfoot_region::region_begin!("python");
}

/// Closes the region `python` in this thread.
#[pyfunction]
pub(crate) fn region_end() {
    lightfoot_region::region_end!("python");
}
