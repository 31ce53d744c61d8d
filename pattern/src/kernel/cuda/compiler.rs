//! The run-time compiler, NVRTC, which is loaded at run time if it is installed.
//!
//! Leaves out: linking, several sources, headers. Source: NVIDIA, NVRTC reference manual.

use super::error::CudaError;
use super::library::{functions, Handle, Library, Status};
use std::ffi::{c_char, c_int, CString};
use std::path::{Path, PathBuf};

functions!(Compiling {
    version = c"nvrtcVersion" (*mut c_int, *mut c_int);
    arch_count = c"nvrtcGetNumSupportedArchs" (*mut c_int);
    archs = c"nvrtcGetSupportedArchs" (*mut c_int);
    create = c"nvrtcCreateProgram" (
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    );
    compile = c"nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
    log_bytes = c"nvrtcGetProgramLogSize" (Handle, *mut usize);
    log = c"nvrtcGetProgramLog" (Handle, *mut c_char);
    cubin_bytes = c"nvrtcGetCUBINSize" (Handle, *mut usize);
    cubin = c"nvrtcGetCUBIN" (Handle, *mut c_char);
    ptx_bytes = c"nvrtcGetPTXSize" (Handle, *mut usize);
    ptx = c"nvrtcGetPTX" (Handle, *mut c_char);
    destroy = c"nvrtcDestroyProgram" (*mut Handle);
});

/// The run-time compiler.
#[derive(Debug)]
pub(super) struct RuntimeCompiler {
    functions: Compiling,
    library: Library,
}

// SAFETY: the compiler's functions may be called from any thread; programs are not shared.
unsafe impl Send for RuntimeCompiler {}
// SAFETY: several threads may compile at once, each a program of its own.
unsafe impl Sync for RuntimeCompiler {}

/// `NVRTC_ERROR_INVALID_OPTION`.
const INVALID_OPTION: Status = 5;

/// Why there is no image.
enum Refusal {
    /// An option is unknown.
    Option,
    /// Anything else.
    Program(CudaError),
}

impl Refusal {
    fn of(message: String) -> Refusal {
        Refusal::Program(CudaError::Compiler { message })
    }
}

/// The form of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The card's own code.
    Cubin,
    /// Code that the driver translates.
    Ptx,
}

impl RuntimeCompiler {
    pub(super) fn open(candidates: &[PathBuf]) -> Result<RuntimeCompiler, CudaError> {
        let library = Library::open(candidates, "compiler")?;
        // The compiler opens a part of itself by name when it first compiles, and in a folder that
        // the loader does not search would not find it.
        for part in parts_beside(&library.path) {
            let _ = Library::open(&[part], "compiler");
        }
        let functions = Compiling::of(&library)?;
        Ok(RuntimeCompiler { functions, library })
    }

    pub(super) fn path(&self) -> &Path {
        &self.library.path
    }

    /// Major and minor version.
    pub(super) fn version(&self) -> (u32, u32) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two numbers.
        unsafe { (self.functions.version)(&mut major, &mut minor) };
        (major as u32, minor as u32)
    }

    /// Compute capabilities that it compiles for, ascending.
    pub(super) fn capabilities(&self) -> Vec<u32> {
        let mut count = 0;
        // SAFETY: writes one number.
        if unsafe { (self.functions.arch_count)(&mut count) } != 0 {
            return Vec::new();
        }
        let mut all = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes as many numbers as it said.
        let status = unsafe { (self.functions.archs)(all.as_mut_ptr()) };
        if status == 0 {
            all.into_iter().map(|one| one as u32).collect()
        } else {
            Vec::new()
        }
    }

    /// Compiles a source. If the compiler refuses one of the optional options, it gets none of
    /// them.
    pub(super) fn compile(
        &self,
        source: &str,
        options: &[String],
        wishes: &[&str],
        form: Form,
    ) -> Result<Vec<u8>, CudaError> {
        let wished = options.iter().cloned().chain(wishes.iter().map(|&wish| wish.to_owned()));
        match self.attempt(source, &wished.collect::<Vec<_>>(), form) {
            Err(Refusal::Option) => match self.attempt(source, options, form) {
                Err(Refusal::Option) => {
                    Err(CudaError::Compiler { message: String::from("it does not know the card's name") })
                }
                Err(Refusal::Program(error)) => Err(error),
                Ok(image) => Ok(image),
            },
            Err(Refusal::Program(error)) => Err(error),
            Ok(image) => Ok(image),
        }
    }

    fn attempt(&self, source: &str, options: &[String], form: Form) -> Result<Vec<u8>, Refusal> {
        let source = CString::new(source).expect("lowered programs have no zero");
        let mut program = std::ptr::null_mut();
        let null = std::ptr::null();
        // SAFETY: writes one handle, which `Program` destroys; both strings end with a zero.
        let status = unsafe {
            (self.functions.create)(&mut program, source.as_ptr(), c"pattern.cu".as_ptr(), 0, null, null)
        };
        if status != 0 {
            return Err(Refusal::of(format!("it takes no program (error {status})")));
        }
        let program = Program { functions: &self.functions, handle: program };
        let options: Vec<CString> =
            options.iter().map(|one| CString::new(one.as_str()).expect("options have no zero")).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|one| one.as_ptr()).collect();
        let (count, first) = (pointers.len() as c_int, pointers.as_ptr());
        // SAFETY: the program lives; `first` points to `count` strings that end with a zero.
        let status = unsafe { (self.functions.compile)(program.handle, count, first) };
        if status == INVALID_OPTION {
            return Err(Refusal::Option);
        }
        if status != 0 {
            let log = program.bytes(self.functions.log_bytes, self.functions.log);
            let log = String::from_utf8_lossy(&log);
            let message = log
                .lines()
                .find(|line| line.contains("error"))
                .map_or_else(|| format!("error {status}"), str::to_owned);
            return Err(Refusal::of(message));
        }
        let made = match form {
            Form::Cubin => program.bytes(self.functions.cubin_bytes, self.functions.cubin),
            Form::Ptx => program.bytes(self.functions.ptx_bytes, self.functions.ptx),
        };
        if made.is_empty() {
            return Err(Refusal::of(String::from("it made nothing")));
        }
        Ok(made)
    }
}

/// The other libraries of the compiler, if they are in the same folder.
fn parts_beside(library: &Path) -> Vec<PathBuf> {
    let folder = library.parent().filter(|folder| folder.is_absolute());
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_part = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins.so"))
    };
    entries.map(|entry| entry.path()).filter(is_part).collect()
}

/// A program of the compiler's.
struct Program<'c> {
    functions: &'c Compiling,
    handle: Handle,
}

impl Program<'_> {
    fn bytes(
        &self,
        size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
        get: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    ) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: writes one number.
        if unsafe { size(self.handle, &mut length) } != 0 {
            return Vec::new();
        }
        let mut bytes = vec![0u8; length];
        // SAFETY: writes as many bytes as it said.
        let status = unsafe { get(self.handle, bytes.as_mut_ptr().cast()) };
        if status == 0 {
            bytes
        } else {
            Vec::new()
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: created once and destroyed once.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}
