//! AMX: tiles of 32×32 sums in four of the eight tile registers.
//!
//! A tile register holds 16 rows of 16 words. One instruction multiplies 16 rows of words of one
//! operand with 16 words for each column of the other, in 16 cycles: 16 groups of steps for a
//! quarter of the sums. The first operand is `B`, whose rows are columns of `C` with their steps
//! of `k` side by side, where they lie or packed; the second is a panel of `A` as it is packed for
//! other kernels. A row of a tile of sums is then a piece of a column of `C`, and a whole tile is
//! stored (and fetched before, if it is added to) where it belongs.
//!
//! Groups come in sixteens, the missing ones as zeros, and columns in 32s, which makes every tile
//! whole: setting the registers to fewer rows empties all of them. What does not exist is not
//! stored.
//!
//! `A` is fetched with a hint that it is wanted from the second level next (without: 3 to 10 %
//! slower), and the lines of `C` are asked for while the sums are computed.
//!
//! Linux hands out the registers' state on request, for the whole process and for good. If it does
//! not (other systems, kernels before 5.16, an alternate signal stack that is too small), this
//! processor counts as having none.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and
//! volume 2, TDPBUSD; Linux, Documentation/arch/x86/xstate.rst.

#[cfg(feature = "half")]
use super::avx512::store_floats;
use super::avx512::{has_avx512, store_integers};
use super::tile::Tile;
use crate::mixed::narrow::Sum;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Rows of a panel.
const ROWS: usize = 32;
/// Columns of a tile of sums.
const COLUMNS: usize = 32;
/// Rows of a tile register, and words of each.
const SIDE: usize = 16;

/// Bits of EDX of leaf 7.
const AMX_BF16: u32 = 1 << 22;
const AMX_TILE: u32 = 1 << 24;
const AMX_INT8: u32 = 1 << 25;

pub(in crate::mixed) fn has_int8() -> bool {
    has_tiles(AMX_INT8)
}

#[cfg(feature = "half")]
pub(in crate::mixed) fn has_bf16() -> bool {
    has_tiles(AMX_BF16)
}

/// Whether this processor has tile registers and `products`, and this process may use them. The
/// processor and the system are asked once: on a virtual machine CPUID takes microseconds.
fn has_tiles(products: u32) -> bool {
    static FEATURES: OnceLock<u32> = OnceLock::new();
    let features = *FEATURES.get_or_init(|| {
        let leaf_7 = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx } else { 0 };
        let is_usable = leaf_7 & AMX_TILE != 0 && has_avx512() && is_permitted();
        if is_usable {
            leaf_7
        } else {
            0
        }
    });
    features & products != 0
}

/// Asks the system for the registers' state.
fn is_permitted() -> bool {
    #[cfg(target_os = "linux")]
    {
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // SAFETY: the call takes two numbers and touches no memory.
        let outcome = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
        outcome == 0
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// The shape of the eight tile registers, as `ldtilecfg` reads it.
#[derive(Debug)]
#[repr(C, align(64))]
struct Shape {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Eight registers of 16 rows of 64 bytes: sums in 0 to 3, `B` in 4 and 5, `A` in 6 and 7.
static WHOLE: Shape = {
    let mut shape = Shape { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
    let mut register = 0;
    while register < 8 {
        shape.row_bytes[register] = 64;
        shape.rows[register] = SIDE as u8;
        register += 1;
    }
    shape
};

/// Prepares the registers before the first tile of a thread's part.
///
/// # Safety
/// A kernel of this module is available.
pub(in crate::mixed) unsafe fn enter() {
    // SAFETY: the caller's promise; the shape is a valid one.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &WHOLE, options(nostack, readonly, preserves_flags)) }
}

/// Gives the registers back, so that switches of threads need not save them.
///
/// # Safety
/// A kernel of this module is available.
pub(in crate::mixed) unsafe fn leave() {
    // SAFETY: the caller's promise.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
}

/// The sums of a whole tile, column after column.
#[repr(C, align(64))]
struct Sums<S>([[S; ROWS]; COLUMNS]);

/// One function of a kernel that multiplies `count` steps of 16 groups: which of the four tiles of
/// sums exist, in the order of their products.
macro_rules! steps {
    ($name:ident, $($line:expr),*) => {
        /// # Safety
        /// The registers have been set; `count` steps of both operands, which is not 0, are
        /// readable: `B`'s first and 17th column begin at `b`, `A`'s panel at `a`.
        #[inline(always)]
        unsafe fn $name(
            count: usize,
            a: *const u32,
            b: [*const u8; 2],
            column: isize,
            (c, c_column): (*const u8, isize),
        ) {
            // SAFETY: the caller's promise; prefetches of any address are harmless.
            unsafe {
                asm!(
                    "2:",
                    "test {left}, {left}", "jz 3f",
                    "prefetchw [{c}]", "prefetchw [{c} + 64]",
                    "prefetchw [{c} + {cc}]", "prefetchw [{c} + {cc} + 64]",
                    "lea {c}, [{c} + 2*{cc}]",
                    "dec {left}",
                    "3:",
                    $($line,)*
                    "add {a}, 2048", "add {b0}, 64", "add {b1}, 64",
                    "dec {count}", "jnz 2b",
                    a = inout(reg) a => _, b0 = inout(reg) b[0] => _, b1 = inout(reg) b[1] => _,
                    c = inout(reg) c => _, left = inout(reg) COLUMNS / 2 => _,
                    count = inout(reg) count => _, cc = in(reg) c_column,
                    row = in(reg) 4 * ROWS, column = in(reg) column,
                    options(nostack, readonly),
                );
            }
        }
    };
}

/// A kernel: its instruction, its type of sums, and how sums of contiguous rows are added to `C`.
macro_rules! tile {
    ($name:ident, $product:literal, $sum:ty, $contiguous:ident) => {
        /// # Safety
        /// The requirements of [`Run`](super::Run), and the registers have the shape of whole
        /// tiles, as they do behind [`enter`]; each column's words are contiguous.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        pub(in crate::mixed) unsafe fn $name(tile: &Tile<$sum>) {
            steps!(
                four,
                "tileloaddt1 tmm6, [{a} + 1*{row}]",
                "tileloadd tmm4, [{b0} + 1*{column}]",
                concat!($product, " tmm0, tmm4, tmm6"),
                "tileloaddt1 tmm7, [{a} + 1*{row} + 64]",
                concat!($product, " tmm1, tmm4, tmm7"),
                "tileloadd tmm5, [{b1} + 1*{column}]",
                concat!($product, " tmm2, tmm5, tmm6"),
                concat!($product, " tmm3, tmm5, tmm7")
            );
            steps!(
                two_of_columns,
                "tileloaddt1 tmm6, [{a} + 1*{row}]",
                "tileloadd tmm4, [{b0} + 1*{column}]",
                concat!($product, " tmm0, tmm4, tmm6"),
                "tileloadd tmm5, [{b1} + 1*{column}]",
                concat!($product, " tmm2, tmm5, tmm6")
            );
            steps!(
                two_of_rows,
                "tileloadd tmm4, [{b0} + 1*{column}]",
                "tileloaddt1 tmm6, [{a} + 1*{row}]",
                concat!($product, " tmm0, tmm4, tmm6"),
                "tileloaddt1 tmm7, [{a} + 1*{row} + 64]",
                concat!($product, " tmm1, tmm4, tmm7")
            );
            steps!(
                one,
                "tileloadd tmm4, [{b0} + 1*{column}]",
                "tileloaddt1 tmm6, [{a} + 1*{row}]",
                concat!($product, " tmm0, tmm4, tmm6")
            );
            let steps = match (tile.rows > SIDE, tile.columns > SIDE) {
                (true, true) => four,
                (false, true) => two_of_columns,
                (true, false) => two_of_rows,
                (false, false) => one,
            };
            let (zero, unit) = (<$sum as Sum>::ZERO, <$sum as Sum>::ONE);
            // Whole tiles of contiguous rows go straight to `C`.
            let is_direct = tile.row_stride == 1
                && (tile.rows, tile.columns) == (ROWS, COLUMNS)
                && tile.alpha == unit
                && (tile.beta == unit || tile.beta == zero);
            let mut stored = MaybeUninit::<Sums<$sum>>::uninit();
            let stride = if is_direct { 4 * tile.col_stride } else { 4 * ROWS as isize };
            let place: *mut u8 = if is_direct { tile.c.cast() } else { stored.as_mut_ptr().cast() };
            let second = place.wrapping_offset(SIDE as isize * stride);
            // SAFETY: a whole tile of `C` is readable, as β is not 0.
            unsafe {
                if is_direct && tile.beta == unit {
                    asm!(
                        "tileloadd tmm0, [{0} + 1*{2}]", "tileloadd tmm1, [{0} + 1*{2} + 64]",
                        "tileloadd tmm2, [{1} + 1*{2}]", "tileloadd tmm3, [{1} + 1*{2} + 64]",
                        in(reg) place, in(reg) second, in(reg) stride,
                        options(nostack, readonly, preserves_flags)
                    );
                } else {
                    asm!(
                        "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                        options(nostack, nomem, preserves_flags)
                    );
                }
            }
            let columns = [tile.b, tile.b.wrapping_offset(SIDE as isize * tile.b_column)];
            let ahead = (tile.c.cast::<u8>().cast_const(), 4 * tile.col_stride);
            if tile.groups > 0 {
                // SAFETY: so many steps of both operands are readable.
                unsafe { steps(tile.groups / SIDE, tile.a, columns, tile.b_column, ahead) };
            }
            // SAFETY: a whole tile is writable at `place`: of `C`, or of the array.
            unsafe {
                asm!(
                    "tilestored [{0} + 1*{2}], tmm0", "tilestored [{0} + 1*{2} + 64], tmm1",
                    "tilestored [{1} + 1*{2}], tmm2", "tilestored [{1} + 1*{2} + 64], tmm3",
                    in(reg) place, in(reg) second, in(reg) stride, options(nostack, preserves_flags)
                );
                if !is_direct {
                    let start = stored.as_ptr().cast::<$sum>();
                    if tile.row_stride == 1 {
                        $contiguous::<ROWS>(tile, start)
                    } else {
                        tile.store::<ROWS>(start)
                    }
                }
            }
        }
    };
}

// The first operand of the instruction is `B`.
tile!(unsigned_signed, "tdpbsud", i32, store_integers);
tile!(signed_unsigned, "tdpbusd", i32, store_integers);
tile!(unsigned_unsigned, "tdpbuud", i32, store_integers);
tile!(signed_signed, "tdpbssd", i32, store_integers);
#[cfg(feature = "half")]
tile!(bf16, "tdpbf16ps", f32, store_floats);
