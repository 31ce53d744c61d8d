//! What an index file says about its contents: the version of the format and the type of the keys.
//!
//! Errors, files and command lines share these names; module `file` reads and writes files. Numbers
//! in files never change their meaning.

/// The newest version of the format that this crate reads. Files of layouts that version 1 has are
/// written in version 1, all others in this one.
pub const VERSION: u32 = 2;

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
}

/// Every key type with the name that a command line and a file use.
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

impl KeyType {
    /// The type's name.
    pub fn name(self) -> &'static str {
        KEY_TYPES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The type named `name`.
    pub fn from_name(name: &str) -> Option<KeyType> {
        KEY_TYPES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The type's number in files.
    pub(crate) fn code(self) -> u32 {
        self as u32 + 1
    }

    /// The type with this number in files.
    pub(crate) fn from_code(code: u32) -> Option<KeyType> {
        KEY_TYPES.iter().map(|(kind, _)| *kind).find(|kind| kind.code() == code)
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
    }
}
