//! Opens a foreign library at run time, and makes tables of its functions.
//!
//! Driver and compiler are installed separately from this program. So they are opened when a card
//! is requested and never linked; if one is missing, the error is one sentence. **Leaves out**
//! closing: driver and compiler start threads of their own, which would continue in unmapped code.

use super::error::CudaError;
use std::ffi::{c_int, c_void, CStr, CString};
use std::path::PathBuf;

/// The result of a function; 0 is success.
pub(super) type Status = c_int;
/// A handle of the library.
pub(super) type Handle = *mut c_void;

/// A library that stays open.
#[derive(Debug)]
pub(super) struct Library {
    handle: Handle,
    pub(super) path: PathBuf,
}

impl Library {
    /// The first of the candidates that opens.
    pub(super) fn open(candidates: &[PathBuf], what: &'static str) -> Result<Library, CudaError> {
        let mut message = String::new();
        for path in candidates {
            let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else { continue };
            // SAFETY: the name ends with a zero; what a library's own initialisers do is its
            // installer's choice.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Ok(Library { handle, path: path.clone() });
            }
            // SAFETY: after a failed dlopen, dlerror returns a string that lives until the next
            // call.
            let error = unsafe { libc::dlerror() };
            if !error.is_null() && (message.is_empty() || path.is_absolute()) {
                // SAFETY: the string ends with a zero, and no call has come in between.
                message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
            }
        }
        Err(CudaError::NoLibrary { what, message })
    }

    pub(super) fn symbol(&self, name: &CStr) -> Result<Handle, CudaError> {
        // SAFETY: the handle is open and the name ends with a zero.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if symbol.is_null() {
            return Err(CudaError::NoFunction {
                library: self.path.clone(),
                name: name.to_string_lossy().into_owned(),
            });
        }
        Ok(symbol)
    }
}

/// A table of a library's functions by name.
macro_rules! functions {
    ($table:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)* }) => {
        #[derive(Debug)]
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }
        impl $table {
            fn of(library: &Library) -> Result<$table, CudaError> {
                Ok($table {
                    // SAFETY: the symbol is the function that the manual describes with these
                    // arguments.
                    $($name: unsafe {
                        std::mem::transmute::<Handle, unsafe extern "C" fn($($argument),*) -> Status>(
                            library.symbol($symbol)?,
                        )
                    },)*
                })
            }
        }
    };
}

pub(super) use functions;
