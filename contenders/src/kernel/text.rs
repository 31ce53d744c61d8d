//! Functions over bytes: looking for one, counting, copying, comparing, decoding.

use super::{Pass, Variant};
use search::sample::Random;
use std::hint::black_box;

/// Bytes of a text.
const BYTES: usize = 1 << 19;

pub(super) fn variants() -> Vec<Variant> {
    vec![
        over("position of a byte", |text| position(text, 0)),
        over("count of a byte", |text| text.iter().filter(|&&byte| byte == b'e').count() as u64),
        over("histogram", histogram),
        over("words", words),
        over("hash byte by byte", hash),
        over("capitals", capitals),
        over("decimal numbers", decimals),
        over("copy of words", copy_words),
        over("compare words", compare_words),
    ]
}

/// Random words of small letters with digits among them.
fn text() -> Vec<u8> {
    let mut random = Random::new(19);
    let letters = b"etaoinshrdlucmfwypvbgkjqxz0123456789";
    let mut text = Vec::with_capacity(BYTES + 16);
    while text.len() < BYTES {
        let length = 1 + random.below(9);
        text.extend((0..length).map(|_| letters[random.below(36) as usize]));
        text.push(b' ');
    }
    text.truncate(BYTES);
    text
}

fn over(name: &str, run: fn(&[u8]) -> u64) -> Variant {
    Variant::new("text", name, BYTES, move || -> Pass {
        let text = text();
        Box::new(move || run(black_box(&text)))
    })
}

#[inline(never)]
fn position(text: &[u8], wanted: u8) -> u64 {
    text.iter().position(|&byte| byte == wanted).unwrap_or(text.len()) as u64
}

#[inline(never)]
fn histogram(text: &[u8]) -> u64 {
    let mut counts = [0u64; 256];
    text.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    counts[usize::from(b'e')]
}

#[inline(never)]
fn words(text: &[u8]) -> u64 {
    let (mut count, mut inside) = (0, false);
    for &byte in text {
        let letter = byte != b' ';
        count += u64::from(letter && !inside);
        inside = letter;
    }
    count
}

#[inline(never)]
fn hash(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[inline(never)]
fn capitals(text: &[u8]) -> u64 {
    let capitals: Vec<u8> = text.iter().map(u8::to_ascii_uppercase).collect();
    u64::from(capitals[text.len() / 2])
}

#[inline(never)]
fn decimals(text: &[u8]) -> u64 {
    let (mut sum, mut number) = (0u64, 0u64);
    for &byte in text {
        if byte.is_ascii_digit() {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        } else {
            sum = sum.wrapping_add(number);
            number = 0;
        }
    }
    sum
}

#[inline(never)]
fn copy_words(text: &[u8]) -> u64 {
    let mut out = Vec::with_capacity(text.len());
    for word in text.split(|&byte| byte == b' ') {
        out.extend_from_slice(word);
    }
    out.len() as u64
}

#[inline(never)]
fn compare_words(text: &[u8]) -> u64 {
    let mut before: &[u8] = &[];
    let mut ascending = 0;
    for word in text.split(|&byte| byte == b' ') {
        ascending += u64::from(before < word);
        before = word;
    }
    ascending
}
