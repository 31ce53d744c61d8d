//! Writes messages of protocol buffers.
//!
//! The profiles that are written this way need numbers, texts and bytes, so no generated code is
//! needed. **Leaves out** reading. Source: the encoding of protocol buffers,
//! <https://protobuf.dev/programming-guides/encoding>.

use std::collections::HashMap;

/// Texts by number; the first one is empty.
pub(super) struct Strings {
    pub(super) all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { all: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    /// The number of a text, which is a new one if the text is new.
    pub(super) fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// A message of protocol buffers while it is written.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    /// A number: seven bits in each byte, the lowest first, and a mark that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field that is a number. Readers take a field that is missing for 0.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    /// A field that is bytes, a text or another message.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A field that is a message.
    pub(super) fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    /// A field that is a list of numbers.
    pub(super) fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let mut list = Message::default();
        values.for_each(|value| list.varint(value));
        self.message(field, &list);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A decoded field.
    #[derive(Debug, PartialEq, Eq)]
    pub(in crate::report) enum Decoded<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            (value, *bytes) = (value | u64::from(first & 0x7f) << shift, rest);
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }

    /// The fields of a message with their numbers.
    pub(in crate::report) fn decoded(mut bytes: &[u8]) -> Vec<(u32, Decoded<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Decoded::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (own, rest) = bytes.split_at(length);
                    bytes = rest;
                    Decoded::Bytes(own)
                }
                other => panic!("type {other}"),
            };
            fields.push(((key >> 3) as u32, value));
        }
        fields
    }

    pub(in crate::report) fn list(mut bytes: &[u8]) -> Vec<u64> {
        std::iter::from_fn(|| (!bytes.is_empty()).then(|| varint(&mut bytes))).collect()
    }

    #[test]
    fn numbers_have_seven_bits_in_each_byte() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        assert_eq!(message.0, [0x08, 0x96, 0x01]);
        for value in [0, 1, 127, 128, 1 << 35, u64::MAX] {
            let mut message = Message::default();
            message.varint(value);
            assert_eq!(list(&message.0), [value]);
        }
    }
}
