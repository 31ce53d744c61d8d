//! The driver, which is loaded at run time if it is installed.
//!
//! Of the driver's hundreds of functions some thirty are bound. The types here own what the driver
//! hands out and are safe to use: memory of the host that a copy engine may still read is waited
//! for before it is changed or freed, copies from and to slices end before they return, and every
//! range is checked. Memory of the card is the kernels' own business: nothing of Rust lives
//! there. Deliberately absent: managed memory, graphs, more than one context. Source: NVIDIA, CUDA
//! Driver API reference manual.

use super::error::CudaError;
use super::library::{functions, Handle, Library, Status};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::path::PathBuf;
use std::sync::Arc;

type Address = u64;

functions!(Functions {
    init = c"cuInit" (c_uint);
    driver_version = c"cuDriverGetVersion" (*mut c_int);
    error_string = c"cuGetErrorString" (Status, *mut *const c_char);
    device_count = c"cuDeviceGetCount" (*mut c_int);
    device = c"cuDeviceGet" (*mut c_int, c_int);
    device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_memory = c"cuDeviceTotalMem_v2" (*mut usize, c_int);
    retain = c"cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    release = c"cuDevicePrimaryCtxRelease_v2" (c_int);
    set_current = c"cuCtxSetCurrent" (Handle);
    module_load = c"cuModuleLoadData" (*mut Handle, *const c_void);
    module_unload = c"cuModuleUnload" (Handle);
    module_function = c"cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    allocate = c"cuMemAlloc_v2" (*mut Address, usize);
    free = c"cuMemFree_v2" (Address);
    host_allocate = c"cuMemAllocHost_v2" (*mut *mut c_void, usize);
    host_free = c"cuMemFreeHost" (*mut c_void);
    to_device = c"cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    to_host = c"cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    within_device = c"cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
    clear = c"cuMemsetD8Async" (Address, u8, usize, Handle);
    stream_create = c"cuStreamCreate" (*mut Handle, c_uint);
    stream_destroy = c"cuStreamDestroy_v2" (Handle);
    stream_synchronize = c"cuStreamSynchronize" (Handle);
    stream_wait = c"cuStreamWaitEvent" (Handle, Handle, c_uint);
    event_create = c"cuEventCreate" (*mut Handle, c_uint);
    event_destroy = c"cuEventDestroy_v2" (Handle);
    event_record = c"cuEventRecord" (Handle, Handle);
    event_synchronize = c"cuEventSynchronize" (Handle);
    event_elapsed = c"cuEventElapsedTime" (*mut f32, Handle, Handle);
    function_attribute = c"cuFuncSetAttribute" (Handle, c_int, c_int);
    launch = c"cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
});

/// The properties of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The card's name, as its maker gives it.
    pub name: String,
    /// Compute capability, major times ten plus minor: 90 for Hopper.
    pub capability: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory on the card.
    pub memory_bytes: u64,
    /// Shared memory that a block of threads can have if it asks for it.
    pub block_shared_bytes: u32,
    /// The CUDA version that the driver speaks, major times a thousand plus minor times ten.
    pub driver_version: u32,
}

/// The driver with its first card's context.
#[derive(Debug)]
pub(super) struct Driver {
    functions: Functions,
    context: Handle,
    device: c_int,
    pub(super) card: Card,
    _library: Library,
}

// SAFETY: the driver's functions may be called from any thread; the context is made current before
// each use.
unsafe impl Send for Driver {}
// SAFETY: the driver's functions may be called by several threads at once.
unsafe impl Sync for Driver {}

/// Attributes of `cuDeviceGetAttribute`.
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const BLOCK_SHARED_BYTES: c_int = 97;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES` of `cuFuncSetAttribute`.
const SHARED_BYTES_MAX: c_int = 8;

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: Status = 100;

impl Driver {
    pub(super) fn open(candidates: &[PathBuf]) -> Result<Arc<Driver>, CudaError> {
        let library = Library::open(candidates, "driver")?;
        let functions = Functions::of(&library)?;
        let mut count = 0;
        // SAFETY: takes no pointers.
        let started = unsafe { (functions.init)(0) };
        if started == 0 {
            // SAFETY: writes one number.
            check(&functions, "count cards", unsafe { (functions.device_count)(&mut count) })?;
        }
        if started == NO_DEVICE || count == 0 && started == 0 {
            return Err(CudaError::NoCard);
        }
        check(&functions, "start", started)?;
        let mut device = 0;
        // SAFETY: writes one number.
        check(&functions, "open the first card", unsafe { (functions.device)(&mut device, 0) })?;
        let card = card(&functions, device)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one handle, which `drop` releases.
        check(&functions, "take the card's context", unsafe { (functions.retain)(&mut context, device) })?;
        Ok(Arc::new(Driver { functions, context, device, card, _library: library }))
    }

    fn check(&self, doing: &'static str, status: Status) -> Result<(), CudaError> {
        check(&self.functions, doing, status)
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<&Functions, CudaError> {
        // SAFETY: the context is retained as long as `self` lives.
        self.check("use the card's context", unsafe { (self.functions.set_current)(self.context) })?;
        Ok(&self.functions)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // SAFETY: retained once by `open`; whatever belongs to the context keeps this driver alive.
        unsafe { (self.functions.release)(self.device) };
    }
}

fn check(functions: &Functions, doing: &'static str, status: Status) -> Result<(), CudaError> {
    if status == 0 {
        return Ok(());
    }
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: writes one pointer, to a string that the driver keeps.
    unsafe { (functions.error_string)(status, &mut text) };
    let message = if text.is_null() {
        format!("error {status}")
    } else {
        // SAFETY: the driver's strings end with a zero and live as long as the driver.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    Err(CudaError::Driver { doing, message, status })
}

fn card(functions: &Functions, device: c_int) -> Result<Card, CudaError> {
    let attribute = |which: c_int| {
        let mut value = 0;
        // SAFETY: writes one number.
        let status = unsafe { (functions.device_attribute)(&mut value, which, device) };
        check(functions, "ask the card what it is", status).map(|()| value as u32)
    };
    let mut name = [0u8; 256];
    let (start, bytes) = (name.as_mut_ptr().cast(), name.len() as c_int - 1);
    // SAFETY: the function writes at most `bytes` bytes of `name`, a zero included.
    let status = unsafe { (functions.device_name)(start, bytes, device) };
    check(functions, "ask the card's name", status)?;
    let (mut memory_bytes, mut driver_version) = (0usize, 0);
    // SAFETY: writes one number.
    check(functions, "ask the card's memory", unsafe {
        (functions.device_memory)(&mut memory_bytes, device)
    })?;
    // SAFETY: writes one number.
    check(functions, "ask the driver's version", unsafe { (functions.driver_version)(&mut driver_version) })?;
    Ok(Card {
        name: name
            .split(|&byte| byte == 0)
            .next()
            .map_or(String::new(), |n| String::from_utf8_lossy(n).into_owned()),
        capability: attribute(CAPABILITY_MAJOR)? * 10 + attribute(CAPABILITY_MINOR)?,
        multiprocessors: attribute(MULTIPROCESSORS)?,
        memory_bytes: memory_bytes as u64,
        block_shared_bytes: attribute(BLOCK_SHARED_BYTES)?,
        driver_version: driver_version as u32,
    })
}

/// Memory of the card.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    driver: Arc<Driver>,
    address: Address,
    bytes: usize,
}

impl DeviceMemory {
    pub(super) fn new(driver: &Arc<Driver>, bytes: usize) -> Result<DeviceMemory, CudaError> {
        let mut address = 0;
        let bytes = bytes.max(16);
        // SAFETY: writes one address, which `drop` frees.
        let status = unsafe { (driver.enter()?.allocate)(&mut address, bytes) };
        driver.check("take memory of the card", status).map_err(|error| error.about_bytes(bytes))?;
        Ok(DeviceMemory { driver: driver.clone(), address, bytes })
    }

    /// Its address for kernels, a multiple of 256.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Makes it at least so large; what it held is lost where it grows.
    pub(super) fn grow(&mut self, driver: &Arc<Driver>, bytes: usize) -> Result<(), CudaError> {
        if self.bytes < bytes {
            *self = DeviceMemory::new(driver, bytes)?;
        }
        Ok(())
    }

    fn at(&self, offset: usize, bytes: usize) -> Address {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(fits, "{bytes} bytes at {offset} of {} on the card", self.bytes);
        self.address + offset as u64
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` and freed once. The driver waits for what uses it.
        let _ = self.driver.enter().map(|functions| unsafe { (functions.free)(self.address) });
    }
}

/// Memory of the host that the card's copy engines read at full speed: its pages stay where they
/// are.
#[derive(Debug)]
pub(super) struct HostMemory {
    start: *mut u8,
    bytes: usize,
    /// Recorded behind every copy that reads it.
    copied: Event,
}

// SAFETY: the memory is owned, and only `&mut self` writes it.
unsafe impl Send for HostMemory {}
// SAFETY: through `&self` the memory is only read.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    pub(super) fn new(driver: &Arc<Driver>, bytes: usize) -> Result<HostMemory, CudaError> {
        let copied = Event::new(driver)?;
        let mut start = std::ptr::null_mut();
        // SAFETY: writes one pointer, to memory that `drop` frees.
        let status = unsafe { (driver.enter()?.host_allocate)(&mut start, bytes.max(1)) };
        driver.check("take pinned memory", status).map_err(|error| error.about_bytes(bytes))?;
        // SAFETY: the memory is `bytes` long; zeroes make it initialised.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, bytes) };
        Ok(HostMemory { start: start.cast(), bytes, copied })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: initialised memory that lives as long as `self`; copies out of it only read.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// The memory for writing; waits for copies that still read it.
    pub(super) fn as_mut_slice(&mut self) -> Result<&mut [u8], CudaError> {
        self.copied.wait()?;
        // SAFETY: initialised memory that lives as long as `self`, exclusively borrowed; no copy
        // reads it any more.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let driver = &self.copied.driver;
        // A copy that cannot be waited for might still read: such memory is left to the end of the
        // process.
        if let (Ok(()), Ok(functions)) = (self.copied.wait(), driver.enter()) {
            // SAFETY: allocated by `new`, freed once, and nothing reads it any more.
            unsafe { (functions.host_free)(self.start.cast()) };
        }
    }
}

/// A point in a stream's work.
#[derive(Debug)]
pub(super) struct Event {
    driver: Arc<Driver>,
    handle: Handle,
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Event {}
// SAFETY: several threads may wait for an event at once.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn new(driver: &Arc<Driver>) -> Result<Event, CudaError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle, which `drop` destroys.
        driver.check("make an event", unsafe { (driver.enter()?.event_create)(&mut handle, 0) })?;
        Ok(Event { driver: driver.clone(), handle })
    }

    /// Waits until all work before the event is done; returns at once if it was never recorded.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the event lives.
        let status = unsafe { (self.driver.enter()?.event_synchronize)(self.handle) };
        self.driver.check("wait for the card", status)
    }

    /// Seconds from `earlier` to here, both reached.
    pub(super) fn seconds_since(&self, earlier: &Event) -> Result<f64, CudaError> {
        let mut milliseconds = 0f32;
        let functions = self.driver.enter()?;
        // SAFETY: writes one number; both events live.
        let status = unsafe { (functions.event_elapsed)(&mut milliseconds, earlier.handle, self.handle) };
        self.driver.check("read the card's clock", status)?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once; the driver keeps what is still awaited.
        let _ = self.driver.enter().map(|functions| unsafe { (functions.event_destroy)(self.handle) });
    }
}

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) blocks: u32,
    /// Threads of a block.
    pub(super) threads: u32,
    /// Shared memory of a block beside what the kernel declares.
    pub(super) shared_bytes: u32,
}

impl Grid {
    /// A grid without more shared memory; blocks beyond the most that a launch has are cut off.
    pub(super) fn new(blocks: usize, threads: u32) -> Grid {
        Grid { blocks: u32::try_from(blocks).unwrap_or(u32::MAX >> 1), threads, shared_bytes: 0 }
    }
}

/// A queue of work for the card. Work of different streams overlaps.
#[derive(Debug)]
pub(super) struct DeviceStream {
    driver: Arc<Driver>,
    handle: Handle,
}

// SAFETY: streams may be used by any thread.
unsafe impl Send for DeviceStream {}
// SAFETY: several threads may give work to a stream at once.
unsafe impl Sync for DeviceStream {}

/// `CU_STREAM_NON_BLOCKING`: does not wait for the default stream.
const NON_BLOCKING: c_uint = 1;

impl DeviceStream {
    pub(super) fn new(driver: &Arc<Driver>) -> Result<DeviceStream, CudaError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle, which `drop` destroys.
        let status = unsafe { (driver.enter()?.stream_create)(&mut handle, NON_BLOCKING) };
        driver.check("make a stream", status)?;
        Ok(DeviceStream { driver: driver.clone(), handle })
    }

    /// Waits until all its work is done.
    pub(super) fn finish(&self) -> Result<(), CudaError> {
        // SAFETY: the stream lives.
        let status = unsafe { (self.driver.enter()?.stream_synchronize)(self.handle) };
        self.driver.check("run on the card", status)
    }

    /// Records the event at this point of the queue.
    pub(super) fn record(&self, event: &Event) -> Result<(), CudaError> {
        // SAFETY: both live.
        let status = unsafe { (self.driver.enter()?.event_record)(event.handle, self.handle) };
        self.driver.check("mark a point in a stream", status)
    }

    /// Makes later work wait for the event.
    pub(super) fn wait_for(&self, event: &Event) -> Result<(), CudaError> {
        // SAFETY: both live.
        let status = unsafe { (self.driver.enter()?.stream_wait)(self.handle, event.handle, 0) };
        self.driver.check("make a stream wait", status)
    }

    /// Copies to the card and waits.
    pub(super) fn write(&self, to: &DeviceMemory, offset: usize, bytes: &[u8]) -> Result<(), CudaError> {
        let address = to.at(offset, bytes.len());
        // SAFETY: the destination's range was checked, and the source outlives the copy, which
        // `finish` waits for.
        let status = unsafe {
            (self.driver.enter()?.to_device)(address, bytes.as_ptr().cast(), bytes.len(), self.handle)
        };
        let finished = self.finish();
        self.driver.check("copy to the card", status)?;
        finished
    }

    /// Copies from the card and waits.
    pub(super) fn read(&self, from: &DeviceMemory, offset: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        let address = from.at(offset, bytes.len());
        // SAFETY: the source's range was checked, and the destination outlives the copy, which
        // `finish` waits for.
        let status = unsafe {
            (self.driver.enter()?.to_host)(bytes.as_mut_ptr().cast(), address, bytes.len(), self.handle)
        };
        let finished = self.finish();
        self.driver.check("copy from the card", status)?;
        finished
    }

    /// Copies from pinned memory, and does not wait.
    pub(super) fn send(
        &self,
        to: &DeviceMemory,
        offset: usize,
        from: &HostMemory,
        range: std::ops::Range<usize>,
    ) -> Result<(), CudaError> {
        let (address, source) = (to.at(offset, range.len()), &from.as_slice()[range]);
        // SAFETY: both ranges were checked; the source is changed or freed only after waiting for
        // the event recorded next.
        let status = unsafe {
            (self.driver.enter()?.to_device)(address, source.as_ptr().cast(), source.len(), self.handle)
        };
        self.driver.check("copy to the card", status)?;
        if let Err(error) = self.record(&from.copied) {
            // Without the event nobody would wait: so here.
            let _ = self.finish();
            return Err(error);
        }
        Ok(())
    }

    /// Copies on the card, and does not wait.
    pub(super) fn duplicate(
        &self,
        to: &DeviceMemory,
        from: &DeviceMemory,
        bytes: usize,
    ) -> Result<(), CudaError> {
        let (to, from) = (to.at(0, bytes), from.at(0, bytes));
        // SAFETY: both ranges were checked.
        let status = unsafe { (self.driver.enter()?.within_device)(to, from, bytes, self.handle) };
        self.driver.check("copy on the card", status)
    }

    /// Fills memory of the card with zeros, and does not wait.
    pub(super) fn clear(&self, memory: &DeviceMemory) -> Result<(), CudaError> {
        self.clear_part(memory, memory.bytes)
    }

    /// Fills the first bytes of memory of the card with zeros, and does not wait.
    pub(super) fn clear_part(&self, memory: &DeviceMemory, bytes: usize) -> Result<(), CudaError> {
        let address = memory.at(0, bytes);
        // SAFETY: the range was checked.
        let status = unsafe { (self.driver.enter()?.clear)(address, 0, bytes, self.handle) };
        self.driver.check("clear memory of the card", status)
    }

    /// Starts a kernel, which takes sixteen words, and does not wait.
    pub(super) fn launch(
        &self,
        kernel: &DeviceFunction,
        grid: Grid,
        task: &[u64; 16],
    ) -> Result<(), CudaError> {
        let mut task = *task;
        let mut arguments = [(&raw mut task).cast::<c_void>()];
        let null: *mut *mut c_void = std::ptr::null_mut();
        // SAFETY: all kernels of this crate take one argument of sixteen words, which the driver
        // copies before it returns.
        let status = unsafe {
            (self.driver.enter()?.launch)(
                kernel.function,
                grid.blocks.max(1),
                1,
                1,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                self.handle,
                arguments.as_mut_ptr(),
                null,
            )
        };
        self.driver.check("start a kernel", status)
    }
}

impl Drop for DeviceStream {
    fn drop(&mut self) {
        let _ = self.finish();
        // SAFETY: made by `new` and destroyed once.
        let _ = self.driver.enter().map(|functions| unsafe { (functions.stream_destroy)(self.handle) });
    }
}

/// A kernel with the module that it is from.
#[derive(Debug)]
pub(super) struct DeviceFunction {
    driver: Arc<Driver>,
    module: Handle,
    function: Handle,
}

// SAFETY: modules may be used by any thread.
unsafe impl Send for DeviceFunction {}
// SAFETY: several threads may launch functions of a module at once.
unsafe impl Sync for DeviceFunction {}

impl DeviceFunction {
    /// Loads what the compiler made, or PTX, and finds the kernel in it.
    pub(super) fn load(driver: &Arc<Driver>, image: &[u8], name: &str) -> Result<DeviceFunction, CudaError> {
        // PTX is a string; images of other forms know their length.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        let mut module = std::ptr::null_mut();
        // SAFETY: writes one handle, which `drop` unloads; the image is whole and ends with a zero.
        let status = unsafe { (driver.enter()?.module_load)(&mut module, image.as_ptr().cast()) };
        driver.check("load a kernel", status)?;
        let mut kernel = DeviceFunction { driver: driver.clone(), module, function: std::ptr::null_mut() };
        let name = CString::new(name).expect("names of kernels have no zero");
        let functions = driver.enter()?;
        // SAFETY: writes one handle; the name ends with a zero.
        let status = unsafe { (functions.module_function)(&mut kernel.function, module, name.as_ptr()) };
        driver.check("find a kernel", status)?;
        Ok(kernel)
    }
}

impl DeviceFunction {
    /// Lets blocks of the kernel have so much shared memory; more than 48 KiB have to be asked for.
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<(), CudaError> {
        let functions = self.driver.enter()?;
        // SAFETY: the function is of a loaded module; takes no pointers of ours.
        let status =
            unsafe { (functions.function_attribute)(self.function, SHARED_BYTES_MAX, bytes as c_int) };
        self.driver.check("take shared memory", status)
    }
}

impl Drop for DeviceFunction {
    fn drop(&mut self) {
        // SAFETY: loaded by `load` and unloaded once, after the work that uses it: callers wait for
        // their streams.
        let _ = self.driver.enter().map(|functions| unsafe { (functions.module_unload)(self.module) });
    }
}
