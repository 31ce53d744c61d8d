//! Long work: the interpreter's lock is released, and a fault of ours becomes a Python exception.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs `work` while other Python threads run. A panic, which would be a fault of this package, is
/// raised as `RuntimeError`, so that no caller meets an exception that is no `Exception`.
pub(crate) fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        PyRuntimeError::new_err(format!("a fault in lightfoot ({said}); please report it"))
    })
}
