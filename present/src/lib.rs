//! What every command of lightfoot shows in one way: output, numbers, terminals, exit statuses,
//! temporary files, progress, help, manual pages and completions.
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a report | a file that is whole, or as it was | [`output::Destination`] |
//! | a sentence | it on standard error, without control characters | [`tell!`] |
//! | a count | `12.35 M` | [`number::compact`] |
//! | numbers and a script | a page that opens offline | [`page::Page`] |
//! | rows of a table | them in order, without a sort of their own | [`order::SortRows`] |
//! | an error with a status of its own | the status | [`exit::of_error`] |
//! | the options of a command | its manual page | [`manual::manual`] |
//! | the options of a program | completions for four shells | [`completion::script`] |
//!
//! It knows nothing of what is shown. **Leaves out** colours beyond bold, translation, and logging.

#![forbid(unsafe_code)]

pub mod completion;
pub mod csv;
pub mod date;
pub mod exit;
pub mod help;
pub mod manual;
pub mod number;
pub mod order;
pub mod output;
pub mod page;
pub mod policy;
pub mod progress;
pub mod temporary;
pub mod terminal;
