//! Estimates which bytes are rare, so that a search for a string looks for those.
//!
//! A rough table for texts in several languages and for programs. Only its order matters, and a
//! wrong estimate costs time but changes no result.

/// How common a byte is in texts and programs, from 0 to 9: about the logarithm of its share.
pub(crate) fn commonness(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' => 9,
        b'a' | b'i' | b'n' | b'o' | b'r' | b's' => 8,
        b'c' | b'd' | b'h' | b'l' | b'm' | b'p' | b'u' | b'_' | 0xD0 | 0xD1 => 7,
        b'b' | b'f' | b'g' | b'k' | b'v' | b'w' | b'x' | b'y' | b'0' | b',' | b'.' | b'(' | b')' | b'/' => 6,
        b'A'..=b'Z' | b'1'..=b'9' | b'-' | b'=' | b'*' | b'"' | b'\t' | b';' | b':' => 5,
        b'j' | b'q' | b'z' | b'>' | b'<' | b'\'' | 0x80..=0xBF => 4,
        0xC0..=0xFF => 3,
        _ => 2,
    }
}
