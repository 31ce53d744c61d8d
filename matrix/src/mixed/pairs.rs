//! The pairs of types that can be multiplied, each with its list of kernels.

use super::kernel::scalar;
#[cfg(target_arch = "x86_64")]
use super::kernel::{amx, avx2, avx512};
use super::pack;
use super::product::{Blocks, Product, RightWords, TileKernel};

macro_rules! product {
    ($left:ty, $right:ty, $sum:ty, $kernels:expr) => {
        impl Product for ($left, $right) {
            type Left = $left;
            type Right = $right;
            type Sum = $sum;
            type Exchanged = ($right, $left);
            const KERNELS: &'static [TileKernel<Self>] = $kernels;
            #[inline]
            fn exact(left: $left, right: $right) -> f64 {
                f64::from(left) * f64::from(right)
            }
        }
    };
}
product!(u8, i8, i32, U8_I8);
product!(i8, u8, i32, I8_U8);
product!(u8, u8, i32, U8_U8);
product!(i8, i8, i32, I8_I8);
product!(i16, i16, i32, I16_I16);
#[cfg(feature = "half")]
product!(half::bf16, half::bf16, f32, BF16_BF16);
#[cfg(feature = "half")]
product!(half::f16, half::f16, f32, F16_F16);

/// A kernel of the list of `$pair`: its name, when it is available, its shape, its words and its
/// function; then when it is faster than the next one, if not always.
macro_rules! kernel {
    ($name:literal, $available:expr, $rows:literal x $columns:literal, $depth:literal, $pack:ident, $run:expr) => {
        kernel!($name, $available, $rows x $columns, $depth, $pack, $run, true)
    };
    ($name:literal, $available:expr, $rows:literal x $columns:literal, $depth:literal, $pack:ident, $run:expr,
     $fast:expr) => {
        TileKernel {
            name: $name,
            is_available: || $available,
            is_fast: || $fast,
            rows: $rows,
            columns: $columns,
            depth: $depth,
            pack_left: pack::$pack::<_, $rows, $depth>,
            pack_right: pack::$pack::<_, $columns, $depth>,
            run: $run,
            blocks: BLOCKS,
        }
    };
    (tiles: $available:path, $depth:literal, $run:expr, $least:expr) => {
        TileKernel {
            name: "amx",
            is_available: $available,
            is_fast: || true,
            rows: 32,
            columns: 32,
            depth: $depth,
            pack_left: pack::avx512::<_, 32, $depth>,
            pack_right: pack::rows::<_, $depth>,
            run: $run,
            blocks: Blocks { least: $least, ..TILE_BLOCKS },
        }
    };
}

/// Eight columns of `B` (of 512 words: 16 KB) stay in the first level while all panels of `A`'s
/// block pass it. That block (240 rows: 480 KB at most) stays in a second level of 1 MB; its panels
/// are read in order, 16 bytes a cycle. Blocks of 1,024 words and 144 rows are as fast for bytes
/// and 5 % slower for `bf16` at N = 2,048.
const BLOCKS: Blocks =
    Blocks { words: 512, rows: 240, unit: 1, right: RightWords::ByGroup, least: 0, around: None };
/// 32 columns of `B` (of 512 words: 64 KB) and 256 rows of `A` (512 KB): of 128, 256 and 512 words
/// and of 128 and 256 rows the fastest on Emerald Rapids.
#[cfg(target_arch = "x86_64")]
const TILE_BLOCKS: Blocks = Blocks {
    words: 512,
    rows: 256,
    unit: 16,
    right: RightWords::ByColumn,
    least: 0,
    around: Some(super::product::Around { before: amx::enter, behind: amx::leave }),
};

/// The kernels of the pairs with 8-bit numbers of two kinds.
macro_rules! dot_products {
    ($list:ident, $pair:ty, $wide:ident) => {
        const $list: &[TileKernel<$pair>] = &[
            #[cfg(target_arch = "x86_64")]
    kernel!(tiles: amx::has_int8, 4, amx::$wide, 128 * 128 * 128),
            #[cfg(target_arch = "x86_64")]
    kernel!("vnni", avx512::has_vnni(), 48 x 8, 4, avx512, avx512::$wide::<3>),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx-vnni", avx2::has_vnni(), 16 x 6, 4, avx2, avx2::$wide),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_avx2(), 16 x 6, 2, avx2, avx2::pairs),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::integers),
        ];
    };
}
dot_products!(U8_I8, (u8, i8), unsigned_signed);
dot_products!(I8_U8, (i8, u8), signed_unsigned);

/// The kernels of pairs whose numbers become words of two 16-bit numbers.
macro_rules! pairs {
    ($list:ident, $pair:ty $(, $tiles:ident)?) => {
        const $list: &[TileKernel<$pair>] = &[
            $(#[cfg(target_arch = "x86_64")]
    kernel!(tiles: amx::has_int8, 4, amx::$tiles, 64 * 64 * 64),)?
            #[cfg(target_arch = "x86_64")]
    kernel!("vnni", avx512::has_vnni(), 48 x 8, 2, avx512, avx512::pairs::<3>),
            #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_avx2(), 16 x 6, 2, avx2, avx2::pairs),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::integers),
        ];
    };
}
pairs!(U8_U8, (u8, u8), unsigned_unsigned);
pairs!(I8_I8, (i8, i8), signed_signed);
pairs!(I16_I16, (i16, i16));

#[cfg(feature = "half")]
const BF16_BF16: &[TileKernel<(half::bf16, half::bf16)>] = &[
    #[cfg(target_arch = "x86_64")]
    kernel!(tiles: amx::has_bf16, 2, amx::bf16, 64 * 64 * 64),
    #[cfg(target_arch = "x86_64")]
    kernel!("bf16", avx512::has_bf16(), 48 x 8, 2, avx512, avx512::bf16::<3>, avx512::is_bf16_fast()),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx512", avx512::has_avx512(), 48 x 8, 1, avx512, avx512::floats::<3>),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_fma(), 16 x 6, 1, avx2, avx2::floats),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::floats),
];
#[cfg(feature = "half")]
const F16_F16: &[TileKernel<(half::f16, half::f16)>] = &[
    #[cfg(target_arch = "x86_64")]
    kernel!("avx512", avx512::has_avx512(), 48 x 8, 1, avx512, avx512::floats::<3>),
    #[cfg(target_arch = "x86_64")]
    kernel!("avx2", avx2::has_fma(), 16 x 6, 1, avx2, avx2::floats),
    kernel!("scalar", true, 8 x 4, 1, plain, scalar::floats),
];
