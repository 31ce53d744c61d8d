//! The instrumentation side of a tool: the view of a block that it gets, and the requests that it
//! can make.

pub(crate) mod instrumenter;
pub(crate) mod request;
pub(crate) mod view;
