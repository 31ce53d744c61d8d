//! The engine's memory in a process that runs already: it is mapped between the program's own
//! mappings, and unmapped again when the engine leaves.
//!
//! The calls are made in the name of a stopped thread, which may stand in an interrupted system
//! call: its registers are restored exactly, so the kernel still repeats that call.

use super::{Image, MappingOrigin, RunParts};
use crate::error::{Error, ErrorKind};
use crate::target::auxiliary::{system_call_in, Auxiliary};
use crate::target::inject::Injector;
use crate::target::layout::Layout;
use crate::target::mappings;
use crate::target::modules::Maps;
use crate::target::restartable::Area;
use crate::target::running;
use crate::target::{ptrace, signal_mask};

impl Image {
    /// Prepares the image of process `pid`, each thread of which is stopped, and maps the engine's
    /// memory into it.
    ///
    /// # Errors
    /// If that is impossible; nothing is mapped then.
    pub(crate) fn of_running(pid: i32, number: u32, run: RunParts) -> Result<Image, Error> {
        let vector = Auxiliary::of(pid);
        let ranges = mappings::ranges(pid);
        let free = |own: std::ops::Range<u64>| {
            ranges.iter().all(|range| range.end <= own.start || range.start >= own.end)
        };
        let layout = Layout::plan(&ranges, vector.entry()).filter(|layout| layout.own().all(free));
        let layout = layout.ok_or_else(|| {
            let why =
                format!("cannot measure process {pid}: its address space has no room for lightfoot's memory");
            Error::new(ErrorKind::Unsupported, why)
        })?;
        let gadget = system_call_in(pid, vector.vdso()).ok_or_else(|| {
            Error::system("cannot read the program's vdso (the system refuses process_vm_readv)")
        })?;
        let image = Image::empty(Maps::new(pid), number, (layout, gadget), run)?;
        let stack = ptrace::registers(pid).map_or(0, |registers| registers.rsp);
        let scratch = running::scratch(pid, stack).ok_or_else(|| {
            let why =
                format!("cannot measure process {pid}: the stack of its first thread cannot be written");
            Error::new(ErrorKind::Unsupported, why)
        })?;
        let mapped = image.call_for_host(pid, |injector| {
            let mapped = image.map_parts(injector, MappingOrigin::Free, scratch);
            // A part that was mapped before the failure must not stay.
            if mapped.is_err() {
                image.unmap(injector);
            }
            mapped
        });
        mapped.unwrap_or_else(|| Err(crate::target::attach::ended(pid))).map(|()| image)
    }

    /// Makes system calls in the name of a stopped thread and restores its registers exactly.
    /// `None` if the thread is gone.
    pub(crate) fn call_for_host<T>(&self, tid: i32, calls: impl FnOnce(&mut Injector) -> T) -> Option<T> {
        let mut injector = Injector::at(tid, self.gadget).ok()?;
        // A step would reset the action of a process that ignores SIGTRAP.
        injector.without_steps();
        let mask = signal_mask::block_for_calls(tid);
        let result = calls(&mut injector);
        injector.finish_exactly();
        ptrace::stop_in_kernel(tid);
        signal_mask::unblock(tid, mask);
        Some(result)
    }

    /// Unmaps the engine's memory.
    pub(crate) fn unmap(&self, injector: &mut Injector) {
        for own in self.translator.cache.layout.own() {
            injector.call(libc::SYS_munmap, [own.start, own.end - own.start, 0, 0, 0, 0]);
        }
    }

    /// Makes a stopped child, which has a copy of its maker's memory, as if the engine had never
    /// been there: the engine's memory is unmapped, and the maker's area for restartable sequences
    /// is registered.
    pub(crate) fn leave_copy(&self, child: i32, area: Option<Area>) {
        self.call_for_host(child, |injector| {
            area.iter().for_each(|area| area.register(injector));
            self.unmap(injector);
        });
    }
}
