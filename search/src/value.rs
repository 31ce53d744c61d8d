//! Values beside keys in a file: how a type of values becomes bytes, and what a header says of
//! them.
//!
//! Values of one size stand end to end. Values whose sizes vary stand behind an array of their
//! ends, as strings do. The name of the type stands in the header, so that a file of other values
//! is refused and not misread.
//!
//! Leaves out: values that are searched where they stand in the file; opening a map copies them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::file::{Header, FIRST_VALUE_WORD};
use crate::line::{lanes, lanes_mut, lines_for, Line};

/// A type of values that files can hold. It is implemented for numbers, `bool`, `()`, `String`,
/// `Vec<u8>` and arrays of bytes; programs implement it for types of their own.
///
/// ```
/// use lightfoot_search::{Map, Value};
/// #[derive(Debug, PartialEq)]
/// struct Place { page: u32, offset: u16 }
/// impl Value for Place {
///     const NAME: &'static str = "place";
///     const BYTES: Option<usize> = Some(6);
///     fn write(&self, bytes: &mut Vec<u8>) {
///         self.page.write(bytes);
///         self.offset.write(bytes);
///     }
///     fn read(bytes: &[u8]) -> Option<Place> {
///         Some(Place { page: u32::read(&bytes[..4])?, offset: u16::read(&bytes[4..])? })
///     }
/// }
/// let map = Map::build(&[7u64], vec![Place { page: 1, offset: 2 }])?;
/// let again = Map::<u64, Place>::from_bytes(&map.to_bytes())?;
/// assert_eq!(again.get(7), Some(&Place { page: 1, offset: 2 }));
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
pub trait Value: Sized {
    /// The type's name in files: 1 to 16 bytes without a zero byte. A file is opened as values of
    /// the same name only.
    const NAME: &'static str;
    /// The bytes that every value takes, or `None` where values take as many as they need.
    const BYTES: Option<usize>;
    /// Appends the value's bytes, the same on every machine.
    fn write(&self, bytes: &mut Vec<u8>);
    /// The value of the bytes that [`Value::write`] appended, or `None` where no value has them.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! define_numbers {
    ($($number:ident)*) => { $(
        impl Value for $number {
            const NAME: &'static str = stringify!($number);
            const BYTES: Option<usize> = Some(size_of::<$number>());

            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<$number> {
                Some($number::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )* };
}

define_numbers!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);

impl Value for bool {
    const NAME: &'static str = "bool";
    const BYTES: Option<usize> = Some(1);

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn read(bytes: &[u8]) -> Option<bool> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Value for () {
    const NAME: &'static str = "()";
    const BYTES: Option<usize> = Some(0);

    fn write(&self, _bytes: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

impl<const N: usize> Value for [u8; N] {
    const NAME: &'static str = "byte array";
    const BYTES: Option<usize> = Some(N);

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
}

impl Value for Vec<u8> {
    const NAME: &'static str = "bytes";
    const BYTES: Option<usize> = None;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

impl Value for String {
    const NAME: &'static str = "string";
    const BYTES: Option<usize> = None;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<String> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// Bytes of a name in a header.
const NAME_BYTES: usize = 16;
/// In place of the bytes of a value: they vary.
const VARYING: u64 = u64::MAX;
const DAMAGED: Error = Error::Damaged { what: "the values do not fit their description" };

/// What a header says of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// Bytes of all values.
    total: usize,
    /// Bytes of each, or `None` where they vary.
    each: Option<usize>,
    name: [u8; NAME_BYTES],
}

impl Description {
    /// The description of values of type `V` that take `total` bytes.
    fn new<V: Value>(total: usize) -> Description {
        const { assert!(!V::NAME.is_empty() && V::NAME.len() <= NAME_BYTES, "1 to 16 bytes") };
        let mut name = [0; NAME_BYTES];
        name[..V::NAME.len()].copy_from_slice(V::NAME.as_bytes());
        Description { total, each: V::BYTES, name }
    }

    /// The description in a header, `None` where there are no values.
    ///
    /// # Errors
    /// Its words describe no values.
    pub(crate) fn of(header: &Header) -> Result<Option<Description>, Error> {
        let words: [u64; 4] = header.extra[FIRST_VALUE_WORD..].try_into().expect("four words of values");
        let [total, each, low, high] = words;
        if words == [0; 4] {
            return Ok(None);
        }
        let number = |word: u64| usize::try_from(word).map_err(|_| DAMAGED);
        let name = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        let each = if each == VARYING { None } else { Some(number(each.checked_sub(1).ok_or(DAMAGED)?)?) };
        let description = Description { total: number(total)?, each, name };
        let fits = each.is_none_or(|each| each.checked_mul(header.n) == Some(description.total));
        if fits && name[0] != 0 {
            Ok(Some(description))
        } else {
            Err(DAMAGED)
        }
    }

    /// Writes the description into a header, whose values follow its other lines.
    pub(crate) fn describe(&self, header: &mut Header) {
        let name = u128::from_le_bytes(self.name);
        let each = self.each.map_or(VARYING, |each| each as u64 + 1);
        let words = [self.total as u64, each, name as u64, (name >> 64) as u64];
        header.extra[FIRST_VALUE_WORD..].copy_from_slice(&words);
        header.full_lines += self.lines(header.n);
    }

    /// Lines of ends.
    fn ends_lines(&self, n: usize) -> usize {
        self.each.map_or(lines_for::<u64>(n + 1), |_| 0)
    }

    /// Lines of `n` values.
    pub(crate) fn lines(&self, n: usize) -> usize {
        self.ends_lines(n).saturating_add(lines_for::<u8>(self.total))
    }

    /// The name of the type.
    fn type_name(&self) -> String {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// Values as lines of a file, and their description.
///
/// # Panics
/// When a value writes other than the bytes that its type promises.
pub(crate) fn encode<V: Value>(values: &[V]) -> (Description, Vec<Line>) {
    let (mut bytes, mut ends) = (Vec::new(), alloc::vec![0]);
    for value in values {
        let start = bytes.len();
        value.write(&mut bytes);
        let written = bytes.len() - start;
        assert!(V::BYTES.is_none_or(|each| each == written), "a {} of {written} bytes", V::NAME);
        ends.push(bytes.len() as u64);
    }
    let description = Description::new::<V>(bytes.len());
    let mut lines = alloc::vec![Line::ZERO; description.lines(values.len())];
    let (first, others) = lines.split_at_mut(description.ends_lines(values.len()));
    if V::BYTES.is_none() {
        lanes_mut::<u64>(first)[..ends.len()].copy_from_slice(&ends);
    }
    lanes_mut::<u8>(others)[..bytes.len()].copy_from_slice(&bytes);
    (description, lines)
}

/// The values in a file's lines, as many as its header says there are keys.
///
/// # Errors
/// [`Error::OtherValues`] where the file holds none, or values of another type, and
/// [`Error::Damaged`] where bytes are those of no value.
pub(crate) fn decode<V: Value>(header: &Header, lines: &[Line]) -> Result<Vec<V>, Error> {
    let described = Description::of(header)?;
    let found = described.map_or(String::new(), |found| found.type_name());
    let wanted = described.filter(|found| *found == Description::new::<V>(found.total));
    let Some(description) = wanted else {
        return Err(Error::OtherValues { found, expected: V::NAME });
    };
    let (ends, bytes) = lines.split_at(description.ends_lines(header.n));
    let bytes = &lanes::<u8>(bytes)[..description.total];
    let value = |bytes: Option<&[u8]>| bytes.and_then(V::read).ok_or(DAMAGED);
    match V::BYTES {
        Some(each) => (0..header.n).map(|at| value(bytes.get(at * each..(at + 1) * each))).collect(),
        None => {
            let ends = &lanes::<u64>(ends)[..header.n + 1];
            if ends[0] != 0 || ends[header.n] != description.total as u64 {
                return Err(DAMAGED);
            }
            ends.windows(2).map(|pair| value(bytes.get(pair[0] as usize..pair[1] as usize))).collect()
        }
    }
}
