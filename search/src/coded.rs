//! Keys that are searched by a code: integers of 8, 16 and 128 signed bits, and tuples.
//!
//! A code is the key's bits in its order, the first field's highest, so that codes are ordered as
//! keys are. It is a `u32`, `u64` or `u128`, whichever is the smallest that has the bits, and an
//! index of keys is an index of their codes: nothing below this file knows of tuples. The smallest
//! integer is found by the compiler, which counts bytes in types ([`Next`]); a tuple of more than
//! sixteen bytes has no code and is no key.
//!
//! Leaves out tables by key for 8- and 16-bit keys: their lanes are 32-bit ones.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::Range;

use crate::column::{Column, Stored};
use crate::error::Error;
use crate::format::{KeyType, TupleType};
use crate::key::Key;
use crate::lane::Exact;
use crate::plan::Options;

/// Codes that are converted at a time.
const CHUNK: usize = 1024;

/// A number of bytes as a type: none.
#[derive(Debug)]
pub(crate) struct Zero;

/// A number of bytes as a type: one more than `N`.
#[derive(Debug)]
pub(crate) struct Next<N>(PhantomData<N>);

/// The sum of two numbers of bytes.
pub(crate) trait Plus<N> {
    /// The sum.
    type Sum;
}

impl<N> Plus<N> for Zero {
    type Sum = N;
}

impl<M: Plus<N>, N> Plus<N> for Next<M> {
    type Sum = Next<M::Sum>;
}

/// A number of bytes for which there is a code.
#[diagnostic::on_unimplemented(message = "a key has at most 16 bytes", label = "has more bytes")]
pub(crate) trait Fits {
    /// The smallest code that has the bytes.
    type Code: Code;
}

/// An unsigned integer that a key becomes.
pub(crate) trait Code: Column + Ord + Copy {
    /// The code 0.
    const ZERO: Self;
    /// The code with the low bits of `bits`.
    fn from_bits(bits: u128) -> Self;
    /// The code's bits.
    fn to_bits(self) -> u128;
}

macro_rules! define_codes {
    ($($code:ty: $last:ident $($bytes:ident)*;)*) => { $(
        impl Code for $code {
            const ZERO: Self = 0;

            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                self as u128
            }
        }

        define_codes!(@sizes $code; $last $($bytes)*);
    )* };
    (@sizes $code:ty; $before:ident $bytes:ident $($more:ident)*) => {
        type $bytes = Next<$before>;
        impl Fits for $bytes {
            type Code = $code;
        }
        define_codes!(@sizes $code; $bytes $($more)*);
    };
    (@sizes $code:ty; $last:ident) => {};
}

define_codes! {
    u32: Zero One Two Three Four;
    u64: Four Five Six Seven Eight;
    u128: Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen Sixteen;
}

/// A type that a field of a tuple key may have: integers of 8 to 64 bits, and floats in total
/// order. Sealed.
#[allow(private_bounds, reason = "sealed: its workings are the crate's own")]
pub trait Field: Ordered + Copy + Debug + Send + Sync + 'static {}

/// A type whose values have a fixed number of bits that are ordered as the values are.
pub(crate) trait Ordered: Copy {
    /// The bytes that the bits take.
    type Bytes;
    /// The number of bits.
    const BITS: u32;
    /// The type in files.
    const TYPE: KeyType;
    /// The value's bits; all higher ones are clear.
    fn to_bits(self) -> u128;
    /// The value with the low bits of `bits`.
    fn from_bits(bits: u128) -> Self;
}

macro_rules! define_ordered {
    ($($value:ident $kind:ident $bytes:ident, |$v:ident| $to:expr, |$b:ident| $from:expr;)*) => { $(
        impl Ordered for $value {
            type Bytes = $bytes;
            const BITS: u32 = 8 * size_of::<$value>() as u32;
            const TYPE: KeyType = KeyType::$kind;

            #[inline(always)]
            fn to_bits(self) -> u128 {
                let $v = self;
                $to as u128
            }

            #[inline(always)]
            fn from_bits($b: u128) -> $value {
                $from
            }
        }
    )* };
}

define_ordered! {
    u8 U8 One, |v| v, |b| b as u8;
    i8 I8 One, |v| v as u8 ^ (1 << 7), |b| (b as u8 ^ (1 << 7)) as i8;
    u16 U16 Two, |v| v, |b| b as u16;
    i16 I16 Two, |v| v as u16 ^ (1 << 15), |b| (b as u16 ^ (1 << 15)) as i16;
    u32 U32 Four, |v| v, |b| b as u32;
    i32 I32 Four, |v| v.to_lane(), |b| i32::from_lane(b as u32);
    f32 F32 Four, |v| v.to_lane(), |b| f32::from_lane(b as u32);
    u64 U64 Eight, |v| v, |b| b as u64;
    i64 I64 Eight, |v| v.to_lane(), |b| i64::from_lane(b as u64);
    f64 F64 Eight, |v| v.to_lane(), |b| f64::from_lane(b as u64);
    i128 I128 Sixteen, |v| v as u128 ^ (1 << 127), |b| (b ^ (1 << 127)) as i128;
}

macro_rules! define_fields {
    ($($field:ident)*) => { $( impl Field for $field {} )* };
}

define_fields!(u8 i8 u16 i16 u32 i32 f32 u64 i64 f64);

/// A key that is searched by its code.
pub(crate) trait Coded: Ordered<Bytes: Fits> {}

macro_rules! define_coded {
    ($($key:ident)*) => { $( impl Coded for $key {} )* };
}

define_coded!(u8 i8 u16 i16 i128);

/// The code of a key.
type CodeOf<K> = <<K as Ordered>::Bytes as Fits>::Code;

/// The sum of two types' bytes.
type Sum<A, B> = <A as Plus<B>>::Sum;

macro_rules! define_tuple {
    ($($field:ident $name:ident),*; $bytes:ty; where $($bound:tt)*) => {
        impl<$($field: Field),*> Ordered for ($($field,)*)
        where
            $($bound)*
        {
            type Bytes = $bytes;
            const BITS: u32 = 0 $(+ $field::BITS)*;
            const TYPE: KeyType = KeyType::Tuple(TupleType::of(&[$($field::TYPE),*]));

            #[inline(always)]
            fn to_bits(self) -> u128 {
                let ($($name,)*) = self;
                let mut bits = 0;
                $( bits = bits << $field::BITS | $name.to_bits(); )*
                bits
            }

            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                let mut below = Self::BITS;
                ($({
                    below -= $field::BITS;
                    $field::from_bits(bits >> below)
                },)*)
            }
        }

        impl<$($field: Field),*> Coded for ($($field,)*)
        where
            $($bound)*
            $bytes: Fits,
        {
        }
    };
}

define_tuple!(A a, B b; Sum<A::Bytes, B::Bytes>; where A::Bytes: Plus<B::Bytes>,);
define_tuple!(
    A a, B b, C c; Sum<A::Bytes, Sum<B::Bytes, C::Bytes>>;
    where B::Bytes: Plus<C::Bytes>, A::Bytes: Plus<Sum<B::Bytes, C::Bytes>>,
);
define_tuple!(
    A a, B b, C c, D d; Sum<A::Bytes, Sum<B::Bytes, Sum<C::Bytes, D::Bytes>>>;
    where
        C::Bytes: Plus<D::Bytes>,
        B::Bytes: Plus<Sum<C::Bytes, D::Bytes>>,
        A::Bytes: Plus<Sum<B::Bytes, Sum<C::Bytes, D::Bytes>>>,
);

/// The code of `key`.
#[inline(always)]
fn code<K: Coded>(key: K) -> CodeOf<K> {
    CodeOf::<K>::from_bits(key.to_bits())
}

/// The key of a code.
#[inline(always)]
fn decoded<K: Coded>(code: CodeOf<K>) -> K {
    K::from_bits(code.to_bits())
}

impl<K: Coded> Column for K {
    type Lane = <CodeOf<K> as Column>::Lane;

    fn build(keys: &[K], options: &Options) -> Result<Stored<Self::Lane>, Error> {
        let codes: Vec<CodeOf<K>> = keys.iter().map(|&key| code(key)).collect();
        CodeOf::<K>::build(&codes, options)
    }

    #[inline(always)]
    fn rank(stored: &Stored<Self::Lane>, query: K) -> usize {
        CodeOf::<K>::rank(stored, code(query))
    }

    fn ranks(stored: &Stored<Self::Lane>, queries: &[K], out: &mut [usize]) {
        assert_eq!(queries.len(), out.len(), "as many answers as queries");
        let mut buffer = [CodeOf::<K>::ZERO; CHUNK];
        for (queries, out) in queries.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let codes = &mut buffer[..queries.len()];
            codes.iter_mut().zip(queries).for_each(|(to, &query)| *to = code(query));
            CodeOf::<K>::ranks(stored, codes, out);
        }
    }

    fn key(stored: &Stored<Self::Lane>, rank: usize) -> K {
        decoded(CodeOf::<K>::key(stored, rank))
    }

    fn read(stored: &Stored<Self::Lane>, ranks: Range<usize>, out: &mut Vec<K>) {
        let mut codes = Vec::with_capacity(ranks.len());
        CodeOf::<K>::read(stored, ranks, &mut codes);
        out.extend(codes.into_iter().map(|code| decoded::<K>(code)));
    }

    fn full_lines(n: usize) -> usize {
        CodeOf::<K>::full_lines(n)
    }

    fn agrees(stored: &Stored<Self::Lane>) -> bool {
        CodeOf::<K>::agrees(stored)
    }

    fn sort(keys: &mut [K]) {
        keys.sort_unstable_by_key(|&key| code(key));
    }
}

impl<K: Coded + Debug + Send + Sync + 'static> Key for K {
    const TYPE: KeyType = <K as Ordered>::TYPE;

    #[inline(always)]
    fn compare(&self, other: &Self) -> Ordering {
        code(*self).cmp(&code(*other))
    }

    #[inline(always)]
    fn successor(self) -> Option<Self> {
        let bits = self.to_bits();
        (bits != u128::MAX >> (128 - K::BITS)).then(|| K::from_bits(bits + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_small_as_can_be() {
        assert_eq!(size_of::<CodeOf<u8>>(), 4);
        assert_eq!(size_of::<CodeOf<(u16, i16)>>(), 4);
        assert_eq!(size_of::<CodeOf<(u8, f32)>>(), 8);
        assert_eq!(size_of::<CodeOf<(u16, u32, i16)>>(), 8);
        assert_eq!(size_of::<CodeOf<(u32, u32, u8)>>(), 16);
        assert_eq!(size_of::<CodeOf<(f64, i64)>>(), 16);
    }

    #[test]
    fn every_code_leads_back_and_has_a_successor() {
        for key in i8::MIN..=i8::MAX {
            assert_eq!(decoded::<i8>(code(key)), key);
            assert_eq!(key.successor(), key.checked_add(1));
        }
        let key = (-1i16, u8::MAX, u8::MAX);
        assert_eq!(decoded::<(i16, u8, u8)>(code(key)), key);
        assert_eq!(key.successor(), Some((0, 0, 0)));
        assert_eq!((i16::MAX, u8::MAX, u8::MAX).successor(), None);
        assert_eq!(i128::MAX.successor(), None);
        assert_eq!((-1i128).successor(), Some(0));
        assert_eq!((u64::MAX, i64::MAX).successor(), None);
    }
}
