//! Libraries that may be on the machine, found at run time: CBLAS by its interface, BLASFEO and
//! libxsmm by their own.

use libloading::Library;
use std::ffi::{c_int, c_uint, c_void};

/// `cblas_?gemm`.
pub(super) type Cblas<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    *const T,
    c_int,
    T,
    *mut T,
    c_int,
);

/// For each library its name, the variable that names its file, and the files to try.
const CBLAS: &[(&str, &str, &[&str])] = &[
    ("openblas", "LIGHTFOOT_OPENBLAS", &["libopenblas.so.0", "libopenblas.so"]),
    ("mkl", "LIGHTFOOT_MKL", &["libmkl_rt.so.3", "libmkl_rt.so.2"]),
    ("blis", "LIGHTFOOT_BLIS", &["libblis.so.4", "libblis.so"]),
];

fn open(variable: &str, names: &[&str]) -> Option<&'static Library> {
    let given = std::env::var(variable).ok();
    let mut names = given.as_deref().into_iter().chain(names.iter().copied());
    // SAFETY: loading runs the library's own initialisers; these libraries are known to be
    // harmless.
    names.find_map(|name| unsafe { Library::new(name) }.ok()).map(|library| &*Box::leak(Box::new(library)))
}

/// The CBLAS libraries that were found, told to use that many threads.
pub(super) fn libraries(threads: usize) -> Vec<(&'static str, &'static Library)> {
    let threads = threads.to_string();
    for variable in ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS"] {
        std::env::set_var(variable, &threads);
    }
    std::env::set_var("MKL_THREADING_LAYER", if threads == "1" { "SEQUENTIAL" } else { "GNU" });
    CBLAS.iter().filter_map(|&(name, variable, files)| Some((name, open(variable, files)?))).collect()
}

/// The CBLAS libraries that were found, with their function `symbol`.
pub(super) fn cblas<T>(symbol: &str, threads: usize) -> Vec<(&'static str, Cblas<T>)> {
    let found = libraries(threads).into_iter().filter_map(|(name, library)| {
        // SAFETY: the symbol has the type that the CBLAS interface gives it (32-bit integers).
        let function = unsafe { library.get::<Cblas<T>>(symbol.as_bytes()) }.ok()?;
        Some((name, *function))
    });
    found.collect()
}

/// Room for `struct blasfeo_dmat` or `blasfeo_smat`, which have 64 bytes in the tested version, and
/// some more.
#[repr(C, align(64))]
struct Handle([u8; 256]);

/// `blasfeo_dgemm_nt` or `blasfeo_sgemm_nt` on matrices of its own: `D ← α·A·Bᵀ + β·C`.
pub(super) struct Blasfeo<T> {
    gemm: unsafe extern "C" fn(
        c_int,
        c_int,
        c_int,
        T,
        *mut c_void,
        c_int,
        c_int,
        *mut c_void,
        c_int,
        c_int,
        T,
        *mut c_void,
        c_int,
        c_int,
        *mut c_void,
        c_int,
        c_int,
    ),
    operands: [Box<Handle>; 3],
}

impl<T: Copy + 'static> Blasfeo<T> {
    /// `letter` is `d` or `s`; `a` and `b` are n×n and column-major.
    pub(super) fn new(letter: char, n: usize, a: &[T], b: &[T]) -> Option<Blasfeo<T>> {
        let library = open("LIGHTFOOT_BLASFEO", &["libblasfeo.so"])?;
        let n = n as c_int;
        // SAFETY: the symbols have these types in BLASFEO's headers; a handle is larger than their
        // struct.
        unsafe {
            type Allocate = unsafe extern "C" fn(c_int, c_int, *mut c_void);
            type Pack<T> = unsafe extern "C" fn(c_int, c_int, *const T, c_int, *mut c_void, c_int, c_int);
            let symbol = |stem: &str| format!("blasfeo_{}\0", stem.replace('?', &letter.to_string()));
            let allocate = *library.get::<Allocate>(symbol("allocate_?mat").as_bytes()).ok()?;
            let pack = *library.get::<Pack<T>>(symbol("pack_?mat").as_bytes()).ok()?;
            let gemm = *library.get(symbol("?gemm_nt").as_bytes()).ok()?;
            let mut operands = [(); 3].map(|()| Box::new(Handle([0; 256])));
            for operand in &mut operands {
                allocate(n, n, (&raw mut **operand).cast());
            }
            for (operand, data) in operands.iter_mut().zip([a, b]) {
                pack(n, n, data.as_ptr(), n, (&raw mut **operand).cast(), 0, 0);
            }
            Some(Blasfeo { gemm, operands })
        }
    }

    pub(super) fn multiply(&mut self, n: usize, one: T, zero: T) {
        let n = n as c_int;
        let [a, b, c] = &mut self.operands;
        let (a, b, c) = ((&raw mut **a).cast(), (&raw mut **b).cast(), (&raw mut **c).cast());
        // SAFETY: three n×n matrices made in `new`.
        unsafe { (self.gemm)(n, n, n, one, a, 0, 0, b, 0, 0, zero, c, 0, 0, c, 0, 0) }
    }
}

/// `libxsmm_gemm_shape` of version 2.
#[repr(C)]
struct XsmmShape {
    sizes: [c_int; 3],
    columns: [c_int; 3],
    types: [c_uint; 4],
}

/// `libxsmm_gemm_param` of version 2: four pointers of the operation, six of each array, of which
/// the first is its address.
#[repr(C)]
struct XsmmArguments([*const c_void; 22]);

/// A kernel that libxsmm made for `C ← A·B`, column-major n×n.
pub(super) struct Xsmm(unsafe extern "C" fn(*const XsmmArguments));

impl Xsmm {
    /// `data_type` is the library's number of the element type.
    pub(super) fn new(n: usize, data_type: c_uint) -> Option<Xsmm> {
        type Dispatch = unsafe extern "C" fn(
            XsmmShape,
            c_uint,
            c_uint,
        ) -> Option<unsafe extern "C" fn(*const XsmmArguments)>;
        /// `LIBXSMM_GEMM_FLAG_BETA_0` and `LIBXSMM_GEMM_PREFETCH_NONE`.
        const FLAGS: (c_uint, c_uint) = (4, 0);
        let library = open("LIGHTFOOT_LIBXSMM", &["libxsmm.so.2", "libxsmm.so"])?;
        let shape = XsmmShape { sizes: [n as c_int; 3], columns: [n as c_int; 3], types: [data_type; 4] };
        // SAFETY: the symbols have these types in the library's headers.
        unsafe {
            let init = library.get::<unsafe extern "C" fn()>(b"libxsmm_init\0").ok()?;
            let dispatch = library.get::<Dispatch>(b"libxsmm_dispatch_gemm\0").ok()?;
            init();
            Some(Xsmm(dispatch(shape, FLAGS.0, FLAGS.1)?))
        }
    }

    pub(super) fn multiply<T>(&self, a: &[T], b: &[T], c: &mut [T]) {
        let mut arguments = XsmmArguments([std::ptr::null(); 22]);
        arguments.0[4] = a.as_ptr().cast();
        arguments.0[10] = b.as_ptr().cast();
        arguments.0[16] = c.as_mut_ptr().cast_const().cast();
        // SAFETY: three n×n arrays, of which the last is written.
        unsafe { (self.0)(&arguments) }
    }
}

/// `CblasColMajor` and `CblasNoTrans`.
pub(super) const COLUMN_MAJOR: c_int = 102;
pub(super) const NO_TRANSPOSITION: c_int = 111;
