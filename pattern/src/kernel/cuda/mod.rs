//! Programs on a graphics card, through CUDA.
//!
//! The plan is the same [`BitProgram`] that processors run. [`lower`](mod@lower) writes it as CUDA
//! C, NVRTC compiles that when it is needed, and the driver runs it; both libraries are opened when
//! somebody asks for a card, so a machine without them loses nothing and hears one sentence
//! ([`CudaError`]).
//!
//! **Shapes.** A warp takes 2,048 bytes at a step, 64 a lane: transposed in registers, then the
//! program on words of 64 bits, shuffles and ballots where streams cross lanes. A text is cut into
//! segments of 16 to 128 KiB, one per warp, with all carries in registers.
//!
//! **Carries between segments, without a pass over the text.** Lines are independent, so a segment
//! starts one step early as if the text began there: once that step holds a line's end, all that
//! follows is exact. Only behind lines longer than a step is a segment *uncertain*. It has then
//! computed with what it assumed to receive, which is mostly what it would have received: a second
//! kernel follows each row of uncertain segments, compares, and computes those again that assumed
//! wrongly, with 16,384 bits at a step. So every text is exact, and so is every program: one whose
//! lines depend on each other ([`Reach::Text`]) makes all segments uncertain. A decoupled look-back
//! would need each addition to wait for its neighbours, which in loops is a chain over the text.
//!
//! **Cost.** A step reads each byte once; 128 logic operations of 64 bytes transpose; an addition
//! is two ballots. From the host, the copy rules. Left out: several cards, and texts larger than
//! the card's memory other than from the host. Source: Cameron et al. 2014, section 3.

mod column;
mod compile;
mod compiler;
mod device;
mod driver;
mod error;
mod host;
mod kept;
mod library;
mod locate;
pub mod lower;
mod pinned;
mod positions;
mod rates;
mod resident;
mod set;
mod work;

pub use column::{EmptyRows, GpuColumn, MatchingRows, RowOffsets};
pub use compile::Compiled;
pub use device::{Cuda, CudaOptions};
pub use driver::Card;
pub use error::CudaError;
pub use lower::{Reach, Width};
pub use pinned::{HostText, PinnedText};
pub use rates::CopyRates;
pub use resident::{GpuProgram, GpuText, MatchingLines};
pub use set::GpuSet;
pub(crate) use set::{windows, SetParts};

#[cfg(doc)]
use crate::program::BitProgram;
