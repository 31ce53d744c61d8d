//! What happens to a call with a parameter that is not allowed.
//!
//! Programs and libraries replace `xerbla_` and `cblas_xerbla` to learn of such calls: NumPy makes
//! an exception of them. So those functions are looked for in the process, and only where there is
//! none a sentence goes to standard error. Either way the routine returns without a result.

use std::ffi::{c_char, c_int, CStr};

/// `xerbla_(name, position, length of the name)`.
type Fortran = unsafe extern "C" fn(*const c_char, *const c_int, usize);
/// `cblas_xerbla(position, name, format, …)`.
type C = unsafe extern "C" fn(c_int, *const c_char, *const c_char, ...);

/// The address of a function of this process.
fn address(name: &CStr) -> Option<*mut std::ffi::c_void> {
    // SAFETY: `name` ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    Some(address).filter(|address| !address.is_null())
}

/// Refuses a call of a Fortran routine, whose name may end in an underscore.
pub(crate) fn fortran(routine: &str, position: c_int) {
    // Fortran's names have six letters at least, filled up with blanks.
    let name = format!("{:<6}", routine.trim_end_matches('_').to_uppercase());
    match address(c"xerbla_") {
        Some(function) => {
            // SAFETY: the function of this name has this type in every BLAS.
            let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Fortran>(function) };
            // SAFETY: the name has this length.
            unsafe { function(name.as_ptr().cast(), &position, name.len()) };
        }
        None => say(name.trim_end(), position),
    }
}

/// Refuses a call of a C routine.
pub(crate) fn c(routine: &str, position: c_int) {
    let name = std::ffi::CString::new(routine).expect("names of routines have no zeros");
    match address(c"cblas_xerbla") {
        Some(function) => {
            // SAFETY: the function of this name has this type in every CBLAS.
            let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, C>(function) };
            // SAFETY: both texts end in zeros, and an empty format takes no argument.
            unsafe { function(position, name.as_ptr(), c"".as_ptr()) };
        }
        None => say(routine, position),
    }
}

fn say(routine: &str, position: c_int) {
    eprintln!(" ** On entry to {routine} parameter number {position} had an illegal value");
}
