//! The instrumentation side of a tool: what it is shown of a block, and what it may ask for.

pub(crate) mod instrumenter;
pub(crate) mod request;
pub(crate) mod view;
