//! Counters: sets of numbers that can be read at once.
//!
//! A set of [`Counters`] names its metrics and returns all their running totals in one read.
//! [`Group`] is the kernel's: hardware and kernel events of a process with all its threads and
//! children, in one `read`; [`RunningProcess`] has one for each thread of a program that ran
//! already. [`Samples`] are counters that the kernel reads itself. Counters of added code and
//! simulated machines implement the same trait in other crates. Events that cannot be counted are
//! refused with the reason when the set is opened; they never read as zero.

mod counters;
mod event;
mod perf;
mod ring;
mod running;
mod sampled;
mod uprobe;

pub use counters::{Counters, Times};
pub use event::{find, names, nearest, Event, EVENTS};
pub use perf::{Alarm, Group, Period, Whose};
pub use running::RunningProcess;
pub(crate) use sampled::{Counted, Sums};
pub use sampled::{Sample, Samples};
pub use uprobe::{Entry, Uprobes};
