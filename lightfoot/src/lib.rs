//! The command `lightfoot`: the only crate that knows all others.
//!
//! `main` parses ([`cli`]), a [`command`] asks for a [`run`], a [`report`] comes out; [`trace`]
//! records metrics over time instead. Names come from crate `symbol`, output and errors go through
//! crate `present`, `grep` and the studies are crates of their own. Everything here is control
//! plane: it runs once per measurement, so it is written to be read; what must be fast is in the
//! crates below.
//!
//! It is a library so that tests and other programs can use the parts; it promises nothing to other
//! crates.

#![forbid(unsafe_code)]

pub mod cli;
pub mod command;
pub mod report;
pub mod run;
pub mod trace;
