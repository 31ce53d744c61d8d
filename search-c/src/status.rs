//! What a C function returns when it fails, and the sentence that says why.
//!
//! The sentence is kept for each thread, as the C library keeps `errno`. A panic of the crates
//! below would end the program at the border to C; it becomes a status here.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use search::Error;

/// No failure.
pub(crate) const OK: c_int = 0;
const UNSORTED: c_int = 1;
const DAMAGED: c_int = 2;
const SYSTEM: c_int = 3;
const ARGUMENT: c_int = 4;
const FAULT: c_int = 5;

/// A failure: its status and its sentence.
pub(crate) struct Failure {
    status: c_int,
    sentence: String,
}

impl Failure {
    /// An argument that is not allowed.
    pub(crate) fn argument(sentence: impl Into<String>) -> Failure {
        Failure { status: ARGUMENT, sentence: sentence.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error {
            Error::Unsorted { .. } => UNSORTED,
            Error::Io(_) => SYSTEM,
            _ => DAMAGED,
        };
        Failure { status, sentence: error.to_string() }
    }
}

thread_local! {
    static SENTENCE: RefCell<CString> = RefCell::default();
}

/// The sentence of this thread's last failure.
pub(crate) fn sentence() -> *const c_char {
    SENTENCE.with_borrow(|sentence| sentence.as_ptr())
}

/// Does `work`, keeps the sentence of its failure, and returns its status.
pub(crate) fn status_of(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let fault = || Failure { status: FAULT, sentence: String::from("the library failed; please report it") };
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(fault()));
    let Err(failure) = done else { return OK };
    let sentence = CString::new(failure.sentence.replace('\0', " ")).unwrap_or_default();
    SENTENCE.with_borrow_mut(|kept| *kept = sentence);
    failure.status
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn failures_become_statuses_with_sentences() {
        assert_eq!(status_of(|| Ok(())), OK);
        for (failure, status) in [
            (Failure::from(Error::Unsorted { position: 3 }), UNSORTED),
            (Failure::from(Error::Foreign), DAMAGED),
            (Failure::from(Error::Io(std::io::Error::other("full"))), SYSTEM),
            (Failure::argument("an argument\0with a zero"), ARGUMENT),
        ] {
            let expected = failure.sentence.replace('\0', " ");
            assert_eq!(status_of(|| Err(failure)), status);
            // SAFETY: the pointer is that of a C string which lives until the next failure.
            let found = unsafe { CStr::from_ptr(sentence()) };
            assert_eq!(found.to_str(), Ok(expected.as_str()));
        }
        assert_eq!(status_of(|| panic!("a fault")), FAULT);
    }
}
