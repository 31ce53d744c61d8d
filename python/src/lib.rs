//! The native half of the Python package `lightfoot`: arrays, texts and columns are searched where
//! they lie, with the interpreter's lock released.
//!
//! The package's Python files (`package/lightfoot`) are its face: they convert arguments and make
//! NumPy arrays. This half takes buffers and capsules, checks each before it reads it, and raises
//! `TypeError` or `ValueError` with one sentence. It needs neither NumPy nor Arrow to be built:
//! arrays come by the buffer protocol, columns by the Arrow C data interface, so that one wheel for
//! the stable ABI of CPython 3.11 has no dependency but the interpreter.
//!
//! **Leaves out** free-threaded interpreters, which have no stable ABI, and arrays that another
//! thread writes while they are searched: such a search answers anything within its bounds.
#![deny(unsafe_op_in_unsafe_fn)]

mod arrow;
mod buffer;
mod column;
mod export;
mod guard;
mod index;
mod mark;
mod order;
mod pattern;
mod sorted;

use pyo3::prelude::*;

/// The module `lightfoot._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(sorted::searchsorted, module)?)?;
    module.add_function(wrap_pyfunction!(mark::region_begin, module)?)?;
    module.add_function(wrap_pyfunction!(mark::region_end, module)?)?;
    module.add_class::<index::Index>()?;
    module.add_class::<pattern::Pattern>()?;
    module.add_class::<export::Column>()?;
    module.add_class::<buffer::Words>()
}
