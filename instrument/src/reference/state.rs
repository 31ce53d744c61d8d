//! The state of a stopped program that the operand decoder reads: registers, and the layout of an
//! XSAVE area.
//!
//! The decoder uses a trait and not the tracee itself, so that tests need no process. Vector
//! registers cost a second system call and a copy of 2–11 KB, so they are fetched only when an
//! operand needs them. Source: Intel SDM volume 1, chapter 13 (XSAVE layout); Linux
//! `user_regs_struct`.

use super::trace;
use iced_x86::Register;
use libc::user_regs_struct;

/// Bytes of the legacy region and the header of an XSAVE area.
const HEADER_END: usize = 576;
/// Offset of XCR0 in the image that Linux passes to a tracer.
const XCR0_OFFSET: usize = 464;

const XMM: usize = 1;
const YMM_HIGH: usize = 2;
const OPMASK: usize = 5;
const ZMM_HIGH: usize = 6;
const ZMM_16: usize = 7;
const TILE_CONFIG: usize = 17;

/// The registers that integer code can name, and the two segment bases.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GeneralRegisters {
    /// The general registers in the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi,
    /// rdi, r8 … r15.
    pub(super) numbered: [u64; 16],
    pub(super) fs_base: u64,
    pub(super) gs_base: u64,
}

impl GeneralRegisters {
    pub(super) fn new(registers: &user_regs_struct) -> GeneralRegisters {
        GeneralRegisters {
            numbered: [
                registers.rax,
                registers.rcx,
                registers.rdx,
                registers.rbx,
                registers.rsp,
                registers.rbp,
                registers.rsi,
                registers.rdi,
                registers.r8,
                registers.r9,
                registers.r10,
                registers.r11,
                registers.r12,
                registers.r13,
                registers.r14,
                registers.r15,
            ],
            fs_base: registers.fs_base,
            gs_base: registers.gs_base,
        }
    }

    /// The zero-extended value of a general register, or the base of a segment register.
    pub(super) fn value(&self, register: Register) -> Option<u64> {
        match register {
            Register::FS => return Some(self.fs_base),
            Register::GS => return Some(self.gs_base),
            Register::CS | Register::DS | Register::ES | Register::SS => return Some(0),
            Register::AH | Register::CH | Register::DH | Register::BH => return None,
            _ if !register.is_gpr() => return None,
            _ => {}
        }
        let whole = self.numbered[register.full_register().number()];
        Some(match register.size() {
            1 => whole & 0xff,
            2 => whole & 0xffff,
            4 => whole & 0xffff_ffff,
            _ => whole,
        })
    }
}

/// The state of a stopped program, for the operand decoder.
pub(super) trait RegisterState {
    /// Integer registers.
    fn general(&self) -> &GeneralRegisters;
    /// All other registers.
    fn extended(&mut self) -> &ExtendedRegisters;
    /// Eight bytes of the program's memory; 0 if they cannot be read.
    fn word(&self, address: u64) -> u64;
}

/// Every register that is not in [`GeneralRegisters`], as an XSAVE image in the standard format.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtendedRegisters {
    pub(super) image: Vec<u8>,
    pub(super) layout: XsaveLayout,
}

impl ExtendedRegisters {
    /// `N` bytes at an offset of the image; zeros if they lie beyond its end.
    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut out = [0; N];
        if let Some(found) = self.image.get(offset..offset + N) {
            out.copy_from_slice(found);
        }
        out
    }

    /// `N` bytes at an offset of a component; zeros if the processor or the kernel lacks the
    /// component.
    fn component<const N: usize>(&self, component: usize, offset: usize) -> [u8; N] {
        match self.layout.components[component] {
            Component { size: 0, .. } => [0; N],
            Component { offset: start, .. } => self.bytes(start + offset),
        }
    }

    /// The 64 bytes of a vector register; parts that the machine lacks are 0.
    pub(super) fn vector(&self, number: usize) -> [u8; 64] {
        if number >= 16 {
            return self.component(ZMM_16, 64 * (number - 16));
        }
        let mut out = [0; 64];
        out[..16].copy_from_slice(&self.bytes::<16>(160 + 16 * number));
        out[16..32].copy_from_slice(&self.component::<16>(YMM_HIGH, 16 * number));
        out[32..].copy_from_slice(&self.component::<32>(ZMM_HIGH, 32 * number));
        out
    }

    /// An MMX register, which is the low part of an x87 register.
    pub(super) fn mmx(&self, number: usize) -> [u8; 8] {
        self.bytes(32 + 16 * number)
    }

    /// A mask register. As a write mask `k0` means "all elements", which the caller handles.
    pub(super) fn mask(&self, number: usize) -> u64 {
        u64::from_le_bytes(self.component(OPMASK, 8 * number))
    }

    /// The 64 bytes that `ldtilecfg` loaded.
    pub(super) fn tile_config(&self) -> [u8; 64] {
        self.component(TILE_CONFIG, 0)
    }

    /// The bits of the components that the operating system has enabled.
    pub(super) fn xcr0(&self) -> u64 {
        u64::from_le_bytes(self.bytes(XCR0_OFFSET))
    }
}

/// The offset and size of a component in a standard XSAVE area, and whether the compact format
/// aligns it to 64 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Component {
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) aligned: bool,
}

/// The layout of XSAVE areas on this processor.
#[derive(Clone, Debug, Default)]
pub(super) struct XsaveLayout {
    pub(super) components: [Component; 32],
}

impl XsaveLayout {
    /// Reads the layout from the processor.
    pub(super) fn host() -> XsaveLayout {
        let mut layout = XsaveLayout::default();
        for (number, component) in layout.components.iter_mut().enumerate().skip(XMM + 1) {
            let (size, offset, flags) = trace::xsave_leaf(number as u32);
            *component = Component { offset: offset as usize, size: size as usize, aligned: flags & 2 != 0 };
        }
        layout
    }

    /// The number of bytes up to the end of the last component of `mask` in the standard format.
    pub(super) fn standard_bytes(&self, mask: u64) -> usize {
        self.selected(mask)
            .map(|(_, component)| component.offset + component.size)
            .max()
            .unwrap_or(0)
            .max(HEADER_END)
    }

    /// The number of bytes up to the end of the last component of `mask` in a compact area that
    /// holds the components of `present`.
    pub(super) fn compact_bytes(&self, present: u64, mask: u64) -> usize {
        let (mut at, mut end) = (HEADER_END, HEADER_END);
        for (number, component) in self.selected(present) {
            if component.aligned {
                at = at.next_multiple_of(64);
            }
            at += component.size;
            if mask >> number & 1 == 1 {
                end = at;
            }
        }
        end
    }

    fn selected(&self, mask: u64) -> impl Iterator<Item = (usize, &Component)> {
        let chosen = move |&(number, component): &(usize, &Component)| {
            number > XMM && mask >> number & 1 == 1 && component.size != 0
        };
        self.components.iter().enumerate().filter(chosen)
    }
}
