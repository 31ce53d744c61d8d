//! The command `lightfoot`: the only crate that knows all others.
//!
//! `main` parses the command line ([`cli`]); a [`command`] starts a [`run`] and makes a [`report`],
//! or records metrics over time ([`trace`]). Names come from crate `symbol`; output and errors go
//! through crate `present`; `grep` and the studies are crates of their own. All of this is control
//! plane: it runs once per measurement, so it is written to be read, and the fast code is in the
//! crates below.
//!
//! It is a library so that tests and other programs can use its parts; its interface is not stable.

#![forbid(unsafe_code)]

pub mod cli;
pub mod command;
pub mod report;
pub mod run;
pub mod trace;
