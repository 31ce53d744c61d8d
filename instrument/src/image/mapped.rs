//! Maps the engine's memory into the target, by system calls that the target executes for the host.
//!
//! ```text
//!   code file (only the host writes it)   ──▶ code zones, lookup and other tables    read, execute
//!   data file (the target writes it too)  ──▶ contexts: counters, filters, rings     read, write
//!   bell file (all images of the run)     ──▶ the run's bell                         read, write
//! ```
//!
//! **Leaves out** the addresses, which `target::layout` plans, and the files (`target::memory`).

use super::{Image, MappingOrigin};
use crate::error::Error;
use crate::target::handover::SCRATCH_BYTES;
use crate::target::inject::{Injector, WantedMapping};
use crate::target::layout::{context, BELL_BYTES, CONTEXTS, CONTEXTS_MAX, LOW_BYTES};
use crate::target::signal_mask;

impl Image {
    /// Maps the image's memory into process `pid`, in place of the engine's memory that the process
    /// has inherited. The parent's thread in context `context` has forked it.
    pub(super) fn replace_inherited(&self, pid: i32, context: usize) -> Result<(), Error> {
        // The parent's thread stands at its system call, so the part of its context that generated
        // code uses within one instruction is free.
        const _: () = assert!(context::VECTOR as usize + SCRATCH_BYTES <= context::FETCH_CLOCK as usize);
        let scratch = CONTEXTS + context as u64 * context::BYTES + u64::from(context::VECTOR);
        self.map_into(pid, MappingOrigin::Inherited, scratch)
    }

    /// Maps the shared files into the stopped target and restores its registers. The calls may
    /// overwrite [`SCRATCH_BYTES`] bytes of the target at `at`.
    pub(super) fn map_into(&self, pid: i32, origin: MappingOrigin, at: u64) -> Result<(), Error> {
        let mut injector = Injector::at(pid, self.gadget)?;
        let mask = signal_mask::block_for_calls(pid);
        let mapped = self.map_parts(&mut injector, origin, at);
        injector.finish(None);
        signal_mask::unblock(pid, mask);
        mapped
    }

    /// Makes the system calls of [`Image::map_into`].
    pub(super) fn map_parts(
        &self,
        injector: &mut Injector,
        origin: MappingOrigin,
        at: u64,
    ) -> Result<(), Error> {
        let layout = &self.translator.cache.layout;
        // A fork has inherited the run's bell.
        let bell = self.bell.as_ref().filter(|_| origin == MappingOrigin::Free);
        let bells = bell.map_or_else(Vec::new, |bell| bell.files());
        let fds = injector.hand_over(&[self.shared.files(), bells].concat(), at)?;
        let [code, data, ref bell @ ..] = fds[..] else { unreachable!("an image has memory of both kinds") };
        let (read, write, run) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
        let mut parts: Vec<(u64, u64, i32, u64, u64)> = Vec::new();
        for (zone_index, place) in layout.zones.iter().enumerate() {
            parts.push((place.address, place.bytes(), read | run, code, layout.zone_offset(zone_index)));
        }
        parts.push((layout.low, LOW_BYTES, read, code, layout.low_offset()));
        parts.extend(bell.iter().map(|&fd| (layout.bell(), BELL_BYTES, read | write, fd, 0)));
        let contexts = context::BYTES * CONTEXTS_MAX as u64;
        parts.push((CONTEXTS, contexts, read | write, data, 0));
        let place = match origin {
            MappingOrigin::Free => libc::MAP_FIXED_NOREPLACE,
            MappingOrigin::Inherited => libc::MAP_FIXED,
        };
        let flags = libc::MAP_SHARED | place | libc::MAP_NORESERVE;
        let mapped = parts.into_iter().try_for_each(|(address, bytes, protection, fd, offset)| {
            injector.map(WantedMapping { address, bytes, protection, flags, fd, offset })?;
            injector.keep_out_of_core(address, bytes);
            Ok(())
        });
        fds.into_iter().for_each(|fd| injector.close(fd));
        mapped
    }
}
