//! What an index file says about its contents: the version of the format and the type of the keys.
//!
//! Errors, files and command lines share these names; module `file` reads and writes files. Numbers
//! in files never change their meaning.

use core::fmt;

/// The newest version of the format that this crate reads. A file is written in the oldest version
/// that can say what it holds: 2 brought layout `pieces`, 3 brought values and types of keys from
/// 8 bits to tuples, 4 brought pieces in one table, 5 copies of a key that are counted.
pub const VERSION: u32 = 5;

/// What a stored index holds, as written in a file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// 32-bit unsigned integers.
    U32,
    /// 32-bit signed integers.
    I32,
    /// 64-bit unsigned integers.
    U64,
    /// 64-bit signed integers.
    I64,
    /// 32-bit floats in total order.
    F32,
    /// 64-bit floats in total order.
    F64,
    /// 128-bit unsigned integers.
    U128,
    /// Byte strings in lexicographic order.
    Bytes,
    /// 8-bit unsigned integers.
    U8,
    /// 8-bit signed integers.
    I8,
    /// 16-bit unsigned integers.
    U16,
    /// 16-bit signed integers.
    I16,
    /// 128-bit signed integers.
    I128,
    /// Tuples, ordered by their first field, then by the next.
    Tuple(TupleType),
}

/// The fields of a tuple's type, as one number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TupleType(u32);

/// The lowest byte of a tuple's number; a plain type's is its number.
const TUPLE: u32 = 0xFF;
/// Bits of a field's number in a tuple's.
const FIELD_BITS: u32 = 6;
/// The most fields of a tuple.
const FIELDS_MAX: usize = 4;

impl TupleType {
    /// The type of tuples of at most four `fields`, which are plain types.
    pub(crate) const fn of(fields: &[KeyType]) -> TupleType {
        assert!(fields.len() <= FIELDS_MAX, "a tuple of keys has at most four fields");
        let (mut code, mut number) = (TUPLE, 0);
        while number < fields.len() {
            let field = fields[number].code();
            assert!(field < 1 << FIELD_BITS, "a field of a tuple is a plain type");
            code |= field << (8 + FIELD_BITS * number as u32);
            number += 1;
        }
        TupleType(code)
    }

    /// The types of the fields, in order.
    pub fn fields(self) -> impl Iterator<Item = KeyType> {
        let codes = (0..FIELDS_MAX as u32).map(move |number| self.0 >> (8 + FIELD_BITS * number));
        codes.filter_map(|code| plain(code & ((1 << FIELD_BITS) - 1)))
    }
}

/// The key types that have names on command lines.
///
/// ```
/// use lightfoot_search::KeyType;
/// assert_eq!(KeyType::from_name("f64"), Some(KeyType::F64));
/// assert_eq!(KeyType::Bytes.name(), "bytes");
/// ```
pub const KEY_TYPES: &[(KeyType, &str)] = &[
    (KeyType::U32, "u32"),
    (KeyType::I32, "i32"),
    (KeyType::U64, "u64"),
    (KeyType::I64, "i64"),
    (KeyType::F32, "f32"),
    (KeyType::F64, "f64"),
    (KeyType::U128, "u128"),
    (KeyType::Bytes, "bytes"),
];

/// Every type but tuples, in the order of their numbers in files.
const PLAIN: [KeyType; 13] = [
    KeyType::U32,
    KeyType::I32,
    KeyType::U64,
    KeyType::I64,
    KeyType::F32,
    KeyType::F64,
    KeyType::U128,
    KeyType::Bytes,
    KeyType::U8,
    KeyType::I8,
    KeyType::U16,
    KeyType::I16,
    KeyType::I128,
];

/// The plain type with this number in files.
fn plain(code: u32) -> Option<KeyType> {
    PLAIN.get((code as usize).wrapping_sub(1)).copied()
}

impl KeyType {
    /// The type's name; `tuple` for all tuples, whose fields [`Display`](fmt::Display) names.
    pub fn name(self) -> &'static str {
        match self {
            KeyType::U8 => "u8",
            KeyType::I8 => "i8",
            KeyType::U16 => "u16",
            KeyType::I16 => "i16",
            KeyType::I128 => "i128",
            KeyType::Tuple(_) => "tuple",
            _ => KEY_TYPES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name),
        }
    }

    /// The type of [`KEY_TYPES`] named `name`.
    pub fn from_name(name: &str) -> Option<KeyType> {
        KEY_TYPES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The type's number in files.
    pub(crate) const fn code(self) -> u32 {
        match self {
            KeyType::U32 => 1,
            KeyType::I32 => 2,
            KeyType::U64 => 3,
            KeyType::I64 => 4,
            KeyType::F32 => 5,
            KeyType::F64 => 6,
            KeyType::U128 => 7,
            KeyType::Bytes => 8,
            KeyType::U8 => 9,
            KeyType::I8 => 10,
            KeyType::U16 => 11,
            KeyType::I16 => 12,
            KeyType::I128 => 13,
            KeyType::Tuple(TupleType(code)) => code,
        }
    }

    /// The type with this number in files.
    pub(crate) fn from_code(code: u32) -> Option<KeyType> {
        if code & 0xFF != TUPLE {
            return plain(code);
        }
        // A number is a tuple's only if its fields give it again: there are no gaps between them.
        let tuple = TupleType(code);
        let mut fields = [KeyType::U8; FIELDS_MAX];
        let mut count = 0;
        for field in tuple.fields() {
            fields[count] = field;
            count += 1;
        }
        (TupleType::of(&fields[..count]) == tuple && count > 1).then_some(KeyType::Tuple(tuple))
    }

    /// The oldest version of the format that has this type.
    pub(crate) fn version(self) -> u32 {
        if self.code() <= KeyType::Bytes.code() {
            1
        } else {
            3
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyType::Tuple(tuple) = self else { return f.write_str(self.name()) };
        for (number, field) in tuple.fields().enumerate() {
            f.write_str(if number == 0 { "(" } else { ", " })?;
            f.write_str(field.name())?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_and_codes_round_trip() {
        for (kind, name) in KEY_TYPES {
            assert_eq!(KeyType::from_name(name), Some(*kind));
            assert_eq!(KeyType::from_code(kind.code()), Some(*kind));
        }
        assert_eq!(KeyType::from_code(0), None);
        for (number, kind) in PLAIN.iter().enumerate() {
            assert_eq!((kind.code() as usize, plain(kind.code())), (number + 1, Some(*kind)));
            assert!(!kind.name().is_empty());
        }
    }

    #[test]
    fn tuple_codes_round_trip() {
        let pair = KeyType::Tuple(TupleType::of(&[KeyType::U32, KeyType::I16]));
        assert_eq!(alloc::format!("{pair}"), "(u32, i16)");
        let four = KeyType::Tuple(TupleType::of(&[KeyType::I128; 4]));
        for kind in [pair, four] {
            assert_eq!(KeyType::from_code(kind.code()), Some(kind));
        }
        // A gap before a field, one field, a field that no type has, and bits behind the last.
        for code in [TUPLE | 1 << 14, TUPLE | 1 << 8, TUPLE | 63 << 8, TUPLE] {
            assert_eq!(KeyType::from_code(code), None, "{code:x}");
        }
    }
}
