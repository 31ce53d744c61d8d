//! An opened card: its driver, the compiler, compiled kernels, and memory for reuse.

use super::compile::{compile, Compiled};
use super::compiler::RuntimeCompiler;
use super::driver::{Card, DeviceFunction, Driver};
use super::error::CudaError;
use super::locate;
use super::lower::Width;
use super::work::Work;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// How a card is opened and used.
#[derive(Clone, Debug)]
pub struct CudaOptions {
    /// Path of the driver's library, if it is not the system's.
    pub driver: Option<PathBuf>,
    /// Path of the compiler's library; `None` to search for it.
    pub compiler: Option<PathBuf>,
    /// Folder for compiled programs; none by default.
    pub cache: Option<PathBuf>,
    /// Number of warps that process a step together.
    pub width: Width,
    /// Number of warps that process a step together when long lines are followed.
    pub chain_width: Width,
    /// Bytes of a segment, rounded up to whole steps; the default keeps the card busy.
    pub segment_bytes: Option<usize>,
    /// Bytes that are copied at once from the host.
    pub piece_bytes: usize,
}

impl Default for CudaOptions {
    fn default() -> CudaOptions {
        CudaOptions {
            driver: None,
            compiler: None,
            cache: None,
            width: Width::WARP,
            chain_width: Width::BLOCK,
            segment_bytes: None,
            piece_bytes: 32 << 20,
        }
    }
}

/// A card.
#[derive(Debug)]
pub struct Cuda {
    pub(super) driver: Arc<Driver>,
    compiler: RuntimeCompiler,
    pub(super) options: CudaOptions,
    kernels: Mutex<Kernels>,
    /// The state of one search at a time; its memory is reused by the next.
    work: Mutex<Work>,
}

/// The kernels that were compiled so far.
#[derive(Debug, Default)]
struct Kernels {
    /// By source.
    images: HashMap<String, Arc<[u8]>>,
    /// By name and source.
    loaded: HashMap<(&'static str, String), Arc<DeviceFunction>>,
}

impl Cuda {
    /// The machine's first card.
    ///
    /// # Errors
    /// The driver, the compiler or a card is missing, in one sentence. Cost: some 0.3 s, the
    /// driver's.
    pub fn open(options: CudaOptions) -> Result<Arc<Cuda>, CudaError> {
        let named = |path: &Option<PathBuf>, else_: fn() -> Vec<PathBuf>| {
            path.clone().map_or_else(else_, |path| vec![path])
        };
        let driver = Driver::open(&named(&options.driver, locate::drivers))?;
        let compiler = RuntimeCompiler::open(&named(&options.compiler, locate::compilers))?;
        let work = Work::new(&driver)?;
        Ok(Arc::new(Cuda { driver, compiler, options, kernels: Mutex::default(), work: Mutex::new(work) }))
    }

    /// The machine's first card, opened once for the process, with default options.
    ///
    /// # Errors
    /// The driver, the compiler or a card is missing; the error is the same each time.
    pub fn shared() -> Result<Arc<Cuda>, CudaError> {
        Cuda::share(CudaOptions::default())
    }

    /// Opens the card that [`Cuda::shared`] returns from then on. The first call decides the
    /// options.
    ///
    /// # Errors
    /// The driver, the compiler or a card is missing; the error is the same each time.
    pub fn share(options: CudaOptions) -> Result<Arc<Cuda>, CudaError> {
        static SHARED: OnceLock<Result<Arc<Cuda>, CudaError>> = OnceLock::new();
        SHARED.get_or_init(|| Cuda::open(options)).clone()
    }

    /// What the first card is, without a compiler.
    ///
    /// # Errors
    /// The driver or a card is missing.
    pub fn first_card() -> Result<Card, CudaError> {
        Driver::open(&locate::drivers()).map(|driver| driver.card.clone())
    }

    /// The compiler that would be used: where it is, and its version.
    ///
    /// # Errors
    /// There is none.
    pub fn first_compiler() -> Result<(PathBuf, (u32, u32)), CudaError> {
        let compiler = RuntimeCompiler::open(&locate::compilers())?;
        Ok((compiler.path().to_owned(), compiler.version()))
    }

    /// Compiles a program for a capability without any card, as tests and `doctor` do.
    ///
    /// # Errors
    /// There is no compiler, or it refuses.
    pub fn compile_only(source: &str, capability: u32) -> Result<Compiled, CudaError> {
        compile(&RuntimeCompiler::open(&locate::compilers())?, source, capability, None)
    }

    /// The card's name, capability and size.
    pub fn card(&self) -> &Card {
        &self.driver.card
    }

    /// The state of searches, locked for one search.
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        // The memory of a search that panicked is overwritten by the next.
        self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A kernel of a source; compiles it if it is not cached.
    pub(super) fn kernel(&self, source: &str, name: &'static str) -> Result<Arc<DeviceFunction>, CudaError> {
        let known = || self.kernels.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (name, source.to_owned());
        if let Some(kernel) = known().loaded.get(&key) {
            return Ok(kernel.clone());
        }
        let image = known().images.get(source).cloned();
        let image = match image {
            Some(image) => image,
            // Threads do not wait for each other's compilations, so two threads may compile the
            // same source.
            None => {
                let folder = self.options.cache.as_deref();
                let compiled = compile(&self.compiler, source, self.card().capability, folder)?;
                let image: Arc<[u8]> = compiled.image.into();
                known().images.insert(source.to_owned(), image.clone());
                image
            }
        };
        let kernel = Arc::new(DeviceFunction::load(&self.driver, &image, name)?);
        known().loaded.insert(key, kernel.clone());
        Ok(kernel)
    }
}
