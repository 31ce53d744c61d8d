//! The memory elements that an AVX-512 mask selects: facts of the manual, by mnemonic.
//!
//! The translator and its slow twin share only these lists, because copying a list from the manual
//! twice would not check it. Each of the two computes by itself which bytes a mask selects. Source:
//! Intel SDM volume 2, sections 2.7 and 2.8.

use iced_x86::Mnemonic;

/// Bytes of the element that one mask bit selects in an explicit broadcast (`vbroadcast*`).
pub(crate) fn broadcast_element(mnemonic: Mnemonic) -> Option<usize> {
    use Mnemonic::*;
    Some(match mnemonic {
        Vpbroadcastb => 1,
        Vpbroadcastw => 2,
        Vbroadcastss | Vpbroadcastd | Vbroadcastf32x2 | Vbroadcasti32x2 | Vbroadcastf32x4
        | Vbroadcasti32x4 | Vbroadcastf32x8 | Vbroadcasti32x8 => 4,
        Vbroadcastsd | Vpbroadcastq | Vbroadcastf64x2 | Vbroadcasti64x2 | Vbroadcastf64x4
        | Vbroadcasti64x4 => 8,
        _ => return None,
    })
}

/// Bytes per mask bit of instructions that combine several small elements into one larger result.
pub(crate) fn mask_granularity(mnemonic: Mnemonic) -> Option<usize> {
    use Mnemonic::*;
    Some(match mnemonic {
        Vpdpbusd | Vpdpbusds | Vpdpwssd | Vpdpwssds | Vdpbf16ps => 4,
        Vfmulcph | Vfcmulcph | Vfmaddcph | Vfcmaddcph | Vfmulcsh | Vfcmulcsh | Vfmaddcsh | Vfcmaddcsh => 4,
        _ => return None,
    })
}

/// Whether the mask selects elements of the result only, so that the whole memory operand is read.
pub(crate) fn reads_whole_source(mnemonic: Mnemonic) -> bool {
    // These belong to the manual's exception classes without fault suppression (E4NF and its
    // variants).
    use Mnemonic::*;
    matches!(
        mnemonic,
        Valignd
            | Valignq
            | Vdbpsadbw
            | Vinsertf32x4
            | Vinsertf32x8
            | Vinsertf64x2
            | Vinsertf64x4
            | Vinserti32x4
            | Vinserti32x8
            | Vinserti64x2
            | Vinserti64x4
            | Vmovddup
            | Vmovshdup
            | Vmovsldup
            | Vpackssdw
            | Vpacksswb
            | Vpackusdw
            | Vpackuswb
            | Vpalignr
            | Vpconflictd
            | Vpconflictq
            | Vpermb
            | Vpermd
            | Vpermi2b
            | Vpermi2d
            | Vpermi2pd
            | Vpermi2ps
            | Vpermi2q
            | Vpermi2w
            | Vpermilpd
            | Vpermilps
            | Vpermpd
            | Vpermps
            | Vpermq
            | Vpermt2b
            | Vpermt2d
            | Vpermt2pd
            | Vpermt2ps
            | Vpermt2q
            | Vpermt2w
            | Vpermw
            | Vpmaddubsw
            | Vpmaddwd
            | Vpmultishiftqb
            | Vpshufb
            | Vpshufbitqmb
            | Vpshufd
            | Vpshufhw
            | Vpshuflw
            | Vpunpckhbw
            | Vpunpckhdq
            | Vpunpckhqdq
            | Vpunpckhwd
            | Vpunpcklbw
            | Vpunpckldq
            | Vpunpcklqdq
            | Vpunpcklwd
            | Vshuff32x4
            | Vshuff64x2
            | Vshufi32x4
            | Vshufi64x2
            | Vshufpd
            | Vshufps
            | Vunpckhpd
            | Vunpckhps
            | Vunpcklpd
            | Vunpcklps
            | Vcvtne2ps2bf16
            | Vgf2p8affineinvqb
            | Vgf2p8affineqb
            | Vgf2p8mulb
    )
}

/// Whether the instruction packs or unpacks elements: the number of mask bits that are set, and not
/// their positions, determines how many contiguous elements are touched.
pub(crate) fn is_packing(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Vpcompressb
            | Vpcompressw
            | Vpcompressd
            | Vpcompressq
            | Vcompressps
            | Vcompresspd
            | Vpexpandb
            | Vpexpandw
            | Vpexpandd
            | Vpexpandq
            | Vexpandps
            | Vexpandpd
    )
}
