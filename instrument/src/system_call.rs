//! System calls that the engine must know of: the stop is before the call, at the `nop` that precedes the `syscall`.

use crate::host::Host;
use crate::image::number;
use crate::layout::context;
use crate::memory;
use crate::ptrace::{self, Registers};

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
/// From the stop (behind the `int3`): over the `nop`; over the `syscall`.
const NOP_BYTES: u64 = 1;
const CALL_BYTES: u64 = 2;

impl Host {
    /// Answers the stop before a special system call and lets the thread go on.
    pub(crate) fn system_call(&mut self, tid: i32) {
        let Some(r) = ptrace::registers(tid) else { return };
        self.effort.system_calls += 1;
        match r.rax & 0xffff_ffff {
            number::SIGACTION => {
                let process = self.threads[&tid].process;
                if let Some(living) = self.living.get_mut(&process) {
                    living.caught = None;
                }
            }
            number::SIGRETURN => return self.signal_return(tid, r),
            number::RSEQ => return self.skip(tid, r, -i64::from(libc::ENOSYS)),
            number::ARCH_PRCTL if r.rdi == ARCH_SET_FS => {
                let context = self.threads[&tid].context;
                self.image_mut(tid).write64(context, context::FS_BASE, r.rsi);
            }
            number::ARCH_PRCTL if r.rdi == ARCH_SET_GS => {
                self.image_mut(tid).translator.refusal =
                    Some("the program sets the gs register, which lightfoot needs".into());
            }
            number::SET_AFFINITY => self.spread(),
            number::GET_AFFINITY => {
                if let Some(result) = self.get_affinity(tid, &r) {
                    return self.skip(tid, r, result);
                }
            }
            number::MMAP | number::MUNMAP | number::MPROTECT | number::MREMAP => {
                self.image_mut(tid).memory_changes(r.rdi, r.rsi);
            }
            _ => {}
        }
        if !self.check_refusal(tid) {
            ptrace::resume(tid, 0);
        }
    }

    /// Answers `sched_getaffinity` with the mask that the program would have by itself; `None` where the kernel's answer is right.
    fn get_affinity(&self, tid: i32, r: &Registers) -> Option<i64> {
        let own = r.rdi == 0 || self.threads.contains_key(&(r.rdi as i32));
        let bytes = self.binding.hidden().filter(|_| own)?.bytes();
        let words = online().div_ceil(64) * 8;
        if (r.rsi as usize) < words || !r.rsi.is_multiple_of(8) {
            return None;
        }
        let written = memory::write_target(tid, r.rdx, &bytes[..words]);
        Some(if written == words { words as i64 } else { -i64::from(libc::EFAULT) })
    }

    /// The call is not made; the program sees `result`.
    fn skip(&mut self, tid: i32, r: Registers, result: i64) {
        let changed = Registers {
            rax: result as u64,
            r11: r.eflags,
            rip: r.rip + NOP_BYTES + CALL_BYTES,
            orig_rax: u64::MAX,
            ..r
        };
        ptrace::set_registers(tid, &changed);
        ptrace::resume(tid, 0);
    }

    /// The return from a handler is made by a step: the stop after it is at the program's own address.
    fn signal_return(&mut self, tid: i32, r: Registers) {
        ptrace::set_registers(tid, &Registers { rip: r.rip + NOP_BYTES, ..r });
        let mut held = Vec::new();
        if !self.step(tid, 0, &mut held) {
            return;
        }
        self.redirect(tid);
        self.next_signal(tid, held);
    }
}

/// Processors that the kernel's masks have bits for: the highest possible one and those below.
fn online() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<usize>().ok());
    last.map_or(64, |n| n + 1)
}
