//! A card that is ready: its driver, the compiler, kernels that were compiled before, and memory
//! that was used before.

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
    /// The driver's library, where it is not the system's.
    pub driver: Option<PathBuf>,
    /// The compiler's library, where it is not to be looked for.
    pub compiler: Option<PathBuf>,
    /// Where compiled programs are kept; nowhere by default.
    pub cache: Option<PathBuf>,
    /// Warps that take a step together.
    pub width: Width,
    /// Warps that take a step together where long lines are followed.
    pub chain_width: Width,
    /// Bytes of a segment, rounded up to whole steps; by default what keeps the card busy.
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
    /// Work of one search at a time; memory is kept from one to the next.
    work: Mutex<Work>,
}

/// What was compiled so far.
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

    /// The card that [`Cuda::shared`] gives from then on. The first call decides the options.
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

    /// A search at a time.
    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        // What a search that panicked left is memory to be written again.
        self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A kernel of a source, compiled where it was not before.
    pub(super) fn kernel(&self, source: &str, name: &'static str) -> Result<Arc<DeviceFunction>, CudaError> {
        let known = || self.kernels.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (name, source.to_owned());
        if let Some(kernel) = known().loaded.get(&key) {
            return Ok(kernel.clone());
        }
        let image = known().images.get(source).cloned();
        let image = match image {
            Some(image) => image,
            // Nobody waits for another's compilation; who compiles the same source meanwhile does
            // it twice.
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
