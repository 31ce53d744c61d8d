//! Vectorscan (or Hyperscan), where its library is found when the bench runs: a peer for sets of
//! patterns. Nothing is linked, and nothing happens without it.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr, CString};
use std::ptr::{null, null_mut};

const MULTILINE: c_uint = 4;
const SINGLE_MATCH: c_uint = 8;
const BLOCK_MODE: c_uint = 1;

type OnMatch = unsafe extern "C" fn(c_uint, c_ulonglong, c_ulonglong, c_uint, *mut c_void) -> c_int;

type CompileMulti = unsafe extern "C" fn(
    *const *const c_char,
    *const c_uint,
    *const c_uint,
    c_uint,
    c_uint,
    *const c_void,
    *mut *mut c_void,
    *mut *mut CompileError,
) -> c_int;

type AllocateScratch = unsafe extern "C" fn(*const c_void, *mut *mut c_void) -> c_int;

type Scan = unsafe extern "C" fn(
    *const c_void,
    *const c_char,
    c_uint,
    c_uint,
    *mut c_void,
    OnMatch,
    *mut c_void,
) -> c_int;

#[repr(C)]
struct CompileError {
    message: *mut c_char,
    expression: c_int,
}

/// The library's functions.
pub(crate) struct Library {
    compile: CompileMulti,
    allocate: AllocateScratch,
    scan: Scan,
    pub(crate) version: String,
}

/// What the patterns of a set are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Haystack {
    /// Each line by itself.
    Line,
    /// Each line by itself; only the first match of each pattern is reported.
    LineOnce,
    /// The whole text; `^` and `$` are the ends of lines.
    Text,
}

/// A compiled set.
pub(crate) struct Database<'l> {
    library: &'l Library,
    database: *mut c_void,
    scratch: *mut c_void,
}

impl Library {
    /// The library of this machine; `None` where there is none.
    pub(crate) fn open() -> Option<Library> {
        // SAFETY: the names end with NUL; opening the library runs its initialisers only.
        let handle = unsafe { libc::dlopen(c"libhs.so.5".as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle was opened above and is never closed.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let version = symbol(c"hs_version")?;
        let (compile, allocate, scan) =
            (symbol(c"hs_compile_multi")?, symbol(c"hs_alloc_scratch")?, symbol(c"hs_scan")?);
        // SAFETY: these are the types that the library's header declares for these names, and
        // `hs_version` returns a string that lives as long as the library.
        unsafe {
            let version: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(version);
            Some(Library {
                compile: std::mem::transmute::<*mut c_void, CompileMulti>(compile),
                allocate: std::mem::transmute::<*mut c_void, AllocateScratch>(allocate),
                scan: std::mem::transmute::<*mut c_void, Scan>(scan),
                version: CStr::from_ptr(version()).to_string_lossy().into_owned(),
            })
        }
    }

    /// A set of patterns, numbered in their order.
    pub(crate) fn compile(&self, patterns: &[String], haystack: Haystack) -> Database<'_> {
        let flag = match haystack {
            Haystack::Line => 0,
            Haystack::LineOnce => SINGLE_MATCH,
            Haystack::Text => MULTILINE,
        };
        let texts: Vec<CString> =
            patterns.iter().map(|pattern| CString::new(pattern.as_str()).expect("no NUL")).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let flags = vec![flag; patterns.len()];
        let numbers: Vec<c_uint> = (0..patterns.len() as c_uint).collect();
        let (mut database, mut error, mut scratch) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the three lists have as many entries as is said, strings end with NUL, and the
        // results are written to places of their types. An error holds a string.
        unsafe {
            let status = (self.compile)(
                pointers.as_ptr(),
                flags.as_ptr(),
                numbers.as_ptr(),
                patterns.len() as c_uint,
                BLOCK_MODE,
                null(),
                &mut database,
                &mut error,
            );
            if status != 0 {
                let error: &CompileError = &*error;
                let message = CStr::from_ptr(error.message).to_string_lossy();
                panic!("{}: {message}", patterns[error.expression.max(0) as usize]);
            }
            assert_eq!((self.allocate)(database, &mut scratch), 0, "scratch memory");
        }
        Database { library: self, database, scratch }
    }
}

impl Database<'_> {
    /// Calls `report` with the pattern and the end of each match.
    pub(crate) fn scan<F: FnMut(usize, usize)>(&self, text: &[u8], report: &mut F) {
        unsafe extern "C" fn call<F: FnMut(usize, usize)>(
            pattern: c_uint,
            _: c_ulonglong,
            end: c_ulonglong,
            _: c_uint,
            report: *mut c_void,
        ) -> c_int {
            // SAFETY: `scan` hands its closure through the library, which calls back while it runs.
            let report = unsafe { &mut *report.cast::<F>() };
            report(pattern as usize, end as usize);
            0
        }
        let context = std::ptr::from_mut(report).cast();
        // SAFETY: the text is as long as is said, database and scratch belong together, and the
        // context is what the callback takes it for.
        let status = unsafe {
            (self.library.scan)(
                self.database,
                text.as_ptr().cast(),
                text.len() as c_uint,
                0,
                self.scratch,
                call::<F>,
                context,
            )
        };
        assert_eq!(status, 0, "the scan ends");
    }
}
