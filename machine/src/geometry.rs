//! Reads a cache's size, ways and line length, as in `32K,8,64`.
//!
//! The order is Cachegrind's; sizes may have units, and `full` means fully associative. A text
//! describes a whole number of sets or is an error; nothing is rounded. **Leaves out** what a cache
//! does with stores: an override keeps the setting of the level that it replaces.

use std::str::FromStr;

/// Size, ways and line length of a cache, checked to be consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Capacity.
    pub size_bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
}

/// The shortest and the longest line that is accepted.
pub(crate) const LINE_BYTES: std::ops::RangeInclusive<u32> = 4..=1 << 20;

/// Largest cache that can be described: 1 TiB.
pub(crate) const SIZE_BYTES_MAX: u64 = 1 << 40;

impl Geometry {
    /// Checks that size, ways and line length are consistent.
    ///
    /// # Errors
    /// A sentence that names the value, if a number is out of range or the size is not a whole
    /// number of sets.
    pub fn new(size_bytes: u64, ways: u32, line_bytes: u32) -> Result<Geometry, String> {
        if !line_bytes.is_power_of_two() || !LINE_BYTES.contains(&line_bytes) {
            return Err(format!("a line of {line_bytes} bytes is no power of two from 4 to 1048576"));
        }
        if ways == 0 {
            return Err("a cache has at least 1 way".into());
        }
        if size_bytes == 0 || size_bytes > SIZE_BYTES_MAX {
            return Err(format!("a size of {size_bytes} bytes is not from 1 to {SIZE_BYTES_MAX}"));
        }
        let set_bytes = u64::from(ways) * u64::from(line_bytes);
        if !size_bytes.is_multiple_of(set_bytes) {
            let set = format!("{ways} ways of {line_bytes} bytes ({set_bytes} bytes)");
            return Err(format!("{size_bytes} bytes are not a whole number of sets of {set}"));
        }
        Ok(Geometry { size_bytes, ways, line_bytes })
    }

    /// Number of sets.
    pub fn sets(&self) -> u64 {
        self.size_bytes / (u64::from(self.ways) * u64::from(self.line_bytes))
    }
}

impl FromStr for Geometry {
    type Err = String;

    fn from_str(text: &str) -> Result<Geometry, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let &[size, ways, line] = parts.as_slice() else {
            return Err(format!("{} of 3 values are given", parts.len()));
        };
        let size_bytes = bytes(size)?;
        let line_bytes = bytes(line)?;
        let line_bytes = u32::try_from(line_bytes).map_err(|_| format!("a line of {line} is too long"))?;
        Geometry::new(size_bytes, ways_of(ways, size_bytes, line_bytes)?, line_bytes)
    }
}

/// Reads a number of ways: `8`, or `full` for as many ways as there are lines.
pub(crate) fn ways_of(text: &str, size_bytes: u64, line_bytes: u32) -> Result<u32, String> {
    if !text.eq_ignore_ascii_case("full") {
        return text.parse().map_err(|_| format!("\"{text}\" is not a number of ways"));
    }
    let lines = size_bytes / u64::from(line_bytes.max(1));
    u32::try_from(lines).map_err(|_| format!("{lines} lines are too many for one set"))
}

/// Reads a size in bytes: `64`, `32K`, `8M`, `1G`; `KiB` and `KB` are accepted too. All units are
/// powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("\"{text}\" is not a size such as 64, 32K or 8M");
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("\"{text}\" is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> String {
        text.parse::<Geometry>().unwrap_err()
    }

    #[test]
    fn sizes_that_are_no_power_of_two() {
        let odd: Geometry = "48K,12,64".parse().unwrap();
        assert_eq!((odd.size_bytes, odd.sets()), (49152, 64));
        assert!("36MiB, 15, 64".parse::<Geometry>().is_err(), "no whole number of sets");
        assert!("35.75M,11,64".parse::<Geometry>().is_err(), "fractions are not read");
        assert_eq!("36608K,11,64".parse::<Geometry>().unwrap().sets(), 53248);
        assert_eq!("4K,full,64".parse::<Geometry>().unwrap().sets(), 1);
        assert_eq!("8192,1,32".parse::<Geometry>().unwrap().sets(), 256);
    }

    #[test]
    fn errors_name_the_value() {
        assert_eq!(problem("32K,8"), "2 of 3 values are given");
        assert_eq!(problem("32X,8,64"), "\"32X\" is not a size such as 64, 32K or 8M");
        assert_eq!(problem("32K,eight,64"), "\"eight\" is not a number of ways");
        assert_eq!(problem("32K,8,63"), "a line of 63 bytes is no power of two from 4 to 1048576");
        assert_eq!(problem("32K,0,64"), "a cache has at least 1 way");
        assert_eq!(problem("0,8,64"), "a size of 0 bytes is not from 1 to 1099511627776");
        assert_eq!(
            problem("33000,8,64"),
            "33000 bytes are not a whole number of sets of 8 ways of 64 bytes (512 bytes)"
        );
        assert_eq!(
            problem("99999999999999999999,8,64"),
            "\"99999999999999999999\" is not a size such as 64, 32K or 8M"
        );
        assert_eq!(problem("99999999999G,8,64"), "\"99999999999G\" is too large");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Geometry>();
        }

        #[test]
        fn near_misses_never_panic(text in "[0-9kKmMgGbi, fulnoe.+-]{0,24}") {
            if let Ok(geometry) = text.parse::<Geometry>() {
                let Geometry { size_bytes, ways, line_bytes } = geometry;
                prop_assert_eq!(geometry.sets() * u64::from(ways) * u64::from(line_bytes), size_bytes);
            }
        }

        #[test]
        fn what_is_written_is_read(sets in 1u64..10_000, ways in 1u32..64, shift in 2u32..12) {
            let line_bytes = 1u32 << shift;
            let size_bytes = sets * u64::from(ways) * u64::from(line_bytes);
            let read: Geometry = format!("{size_bytes},{ways},{line_bytes}").parse().unwrap();
            prop_assert_eq!(read, Geometry { size_bytes, ways, line_bytes });
            prop_assert_eq!(read.sets(), sets);
        }
    }
}
