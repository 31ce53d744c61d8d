//! Errors of graphics cards, each with a message of one sentence.

use std::fmt;
use std::path::PathBuf;

/// Why a card cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CudaError {
    /// A library is not installed or does not open.
    NoLibrary {
        /// `driver` or `compiler`.
        what: &'static str,
        /// The system's message for the last candidate.
        message: String,
    },
    /// A library is older than what is needed of it.
    NoFunction {
        /// Which.
        library: PathBuf,
        /// The function that the library lacks.
        name: String,
    },
    /// The driver sees no card.
    NoCard,
    /// The driver refused something.
    Driver {
        /// What was tried.
        doing: &'static str,
        /// The driver's reason.
        message: String,
        /// The driver's number for it.
        status: i32,
    },
    /// The compiler refused a program.
    Compiler {
        /// The compiler's first error.
        message: String,
    },
    /// The card is older than what the compiler knows.
    Capability {
        /// The card's, major times ten plus minor.
        card: u32,
    },
    /// A text was uploaded for another terminator than the program's.
    Terminator {
        /// The text's.
        text: u8,
        /// The program's.
        program: u8,
    },
    /// The pattern has no bit-stream program.
    NoProgram {
        /// Why, or which engine has it instead.
        reason: String,
    },
}

impl CudaError {
    /// The error with the number of bytes that were asked for.
    pub(super) fn about_bytes(self, bytes: usize) -> CudaError {
        match self {
            CudaError::Driver { doing, message, status } => {
                CudaError::Driver { doing, message: format!("{message} (asked for {bytes} bytes)"), status }
            }
            other => other,
        }
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each sentence says what is missing and, where somebody can help it, what to do.
        match self {
            CudaError::NoLibrary { what: "driver", message } => {
                write!(f, "there is no CUDA driver ({message}); it comes with NVIDIA's driver for the card, as libcuda.so.1")
            }
            CudaError::NoLibrary { what, message } => write!(
                f,
                "there is no CUDA {what} ({message}); install NVRTC (with the CUDA toolkit, or from PyPI as nvidia-cuda-nvrtc-cu12) or \
                 name its library in LIGHTFOOT_NVRTC"
            ),
            CudaError::NoFunction { library, name } => {
                write!(f, "{} has no {name}: CUDA 11.2 or later is needed", library.display())
            }
            CudaError::NoCard => write!(f, "the CUDA driver sees no card"),
            CudaError::Driver { doing, message, .. } => write!(f, "the CUDA driver cannot {doing}: {message}"),
            CudaError::Compiler { message } => write!(f, "the CUDA compiler refuses the program: {message}"),
            CudaError::Capability { card } => write!(
                f,
                "the card's compute capability {}.{} is below all that the CUDA compiler knows; install an older one",
                card / 10,
                card % 10
            ),
            CudaError::Terminator { text, program } => write!(
                f,
                "the text was uploaded with lines that end with byte {text}, and the program's end with byte {program}"
            ),
            CudaError::NoProgram { reason } => {
                write!(f, "the pattern has no bit-stream program, which is all that a card runs: {reason}")
            }
        }
    }
}

impl std::error::Error for CudaError {}
