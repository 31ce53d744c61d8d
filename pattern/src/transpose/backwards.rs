//! Texts with the last byte first, for programs that run backwards.

/// Bytes of a vector.
const VECTOR_BYTES: usize = 64;

/// Writes `text` to `out`, last byte first. Cost: one copy, which reads from front to back because
/// memory is read fastest so.
pub(crate) fn reverse(text: &[u8], out: &mut Vec<u8>) {
    out.resize(text.len(), 0);
    let (text, tail) = text.split_at(text.len() / VECTOR_BYTES * VECTOR_BYTES);
    let (head, out) = out.split_at_mut(tail.len());
    words(tail, head);
    vectors(text, out);
}

#[cfg(target_arch = "x86_64")]
fn vectors(text: &[u8], out: &mut [u8]) {
    if super::avx512::reverse(text, out).is_none() {
        words(text, out);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors(text: &[u8], out: &mut [u8]) {
    words(text, out);
}

/// Writes `text` to `out`, last byte first, eight bytes at a time.
fn words(text: &[u8], out: &mut [u8]) {
    let (words, tail) = text.as_chunks::<8>();
    let (head, reversed) = out.as_rchunks_mut::<8>();
    for (to, from) in reversed.iter_mut().rev().zip(words) {
        *to = u64::from_le_bytes(*from).swap_bytes().to_le_bytes();
    }
    for (to, from) in head.iter_mut().zip(tail.iter().rev()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_reversed_whatever_its_length() {
        let mut out = vec![9; 3];
        for length in 0..400 {
            let text: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            reverse(&text, &mut out);
            assert!(out.iter().rev().eq(text.iter()), "{length}");
            words(&text, &mut out);
            assert!(out.iter().rev().eq(text.iter()), "{length} by words");
        }
    }
}
