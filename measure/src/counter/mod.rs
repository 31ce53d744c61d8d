//! Where numbers come from: anything that can be read all at once.
//!
//! A set of [`Counters`] names its metrics and, when asked, tells their running totals in one read.
//! [`Group`] is the kernel's: hardware and kernel events of a process with all its threads and
//! children, in one `read`; [`Samples`] are those that the kernel reads itself. Pages of counters
//! that added code increments, and simulated machines, implement the same trait elsewhere. What
//! cannot be counted is refused when the set is opened, with the reason; it never reads as zero.

mod counters;
mod event;
mod perf;
mod ring;
mod sampled;
mod uprobe;

pub use counters::{Counters, Times};
pub use event::{find, names, nearest, Event, EVENTS};
pub use perf::{Alarm, Group, Period, Whose};
pub(crate) use sampled::{Counted, Sums};
pub use sampled::{Sample, Samples};
pub use uprobe::{Entry, Uprobes};
