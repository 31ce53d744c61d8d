//! Pieces of streams that come in parts.

use super::super::piece::FIRST_BYTES;
use super::*;

/// A reader that gives its bytes in parts of certain lengths.
struct Parts<'t>(&'t [u8], std::iter::Cycle<std::vec::IntoIter<usize>>);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = self.1.next().unwrap_or(1).min(buffer.len());
        self.0.read(&mut buffer[..wanted])
    }
}

fn pieces(text: &[u8], lengths: Vec<usize>, on_nul: Nul) -> (Vec<(u64, Vec<u8>)>, Option<u64>) {
    let mut stream = Stream::new(Parts(text, lengths.into_iter().cycle()), on_nul, Sizes::USUAL);
    assert!(!stream.is_marked().unwrap());
    let mut all = Vec::new();
    while stream.next().unwrap() {
        all.push((stream.offset, stream.piece().to_vec()));
    }
    (all, stream.nul)
}

#[test]
fn pieces_are_whole_lines_of_the_whole_text() {
    let long = [&b"x".repeat(3 * FIRST_BYTES)[..], b"\nshort\n", &b"ab\n".repeat(50_000), b"open"].concat();
    for text in [&b""[..], b"\n", b"a", b"a\nb", b"a\nb\n", &long] {
        for lengths in [vec![1, 7], vec![1 << 20], vec![3, 50_000, 1]] {
            for on_nul in [Nul::EndsLine, Nul::EndsSearch, Nul::InLines] {
                let (pieces, nul) = pieces(text, lengths.clone(), on_nul);
                let mut at = 0;
                for (number, (offset, piece)) in pieces.iter().enumerate() {
                    assert_eq!(*offset, at as u64);
                    assert!(piece.ends_with(b"\n") || number + 1 == pieces.len());
                    assert_eq!(piece[..], text[at..at + piece.len()]);
                    at += piece.len();
                }
                assert_eq!((at, nul), (text.len(), None));
            }
        }
    }
}

#[test]
fn a_nul_byte_ends_a_line_or_the_text_or_nothing() {
    for lengths in [vec![1], vec![2, 3], vec![100]] {
        let (all, nul) = pieces(b"abc\nd\0e\n\0f", lengths.clone(), Nul::EndsLine);
        assert_eq!(all.into_iter().flat_map(|(_, piece)| piece).collect::<Vec<u8>>(), b"abc\nd\ne\n\nf");
        assert_eq!(nul, Some(5));
        assert_eq!(pieces(b"a\0b\n", lengths, Nul::Ignored).1, None);
    }
    let (all, nul) = pieces(b"abc\nd\0e\n\0f", vec![4, 1], Nul::EndsSearch);
    assert_eq!((all, nul), (vec![(0, b"abc\n".to_vec())], Some(5)));
    let (all, nul) = pieces(b"abc\nd\0e\n\0f", vec![100], Nul::EndsSearch);
    assert_eq!((all, nul), (Vec::new(), Some(5)));
}

#[test]
fn a_long_line_takes_no_more_room_than_the_text_has() {
    let text = "x".repeat(5 * FIRST_BYTES);
    for expected in [0, text.len() / 2, text.len() + 1, usize::MAX] {
        let mut stream = Stream::begun(text.as_bytes(), Nul::InLines, Vec::new(), 0, expected, Sizes::USUAL);
        while stream.next().unwrap() {}
        let most = if expected == text.len() + 1 { expected } else { 16 * FIRST_BYTES };
        assert!((text.len()..=most).contains(&stream.buffer.len()), "{expected}");
    }
}
