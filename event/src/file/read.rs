//! Reads a stream file chunk by chunk, and believes nothing. See the parent module for the format.

use super::format::{
    checksum, Header, BLOCK, DONE, ENTRY_BYTES, HEADER_WORDS, MAGIC, PAYLOAD_BYTES_MAX, RECORDS, SITE,
    VERSION,
};
use crate::{Block, Record, Sink, Site, Sites};
use std::fmt;
use std::io::{self, Read};

/// Why a file is not a stream that can be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The underlying reader failed.
    Io(io::Error),
    /// The file does not start as a stream file does.
    NotAStream,
    /// The file has this version, which is not the one that is read.
    Version(u32),
    /// The header says nothing that makes sense.
    Header,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Io(error) => write!(f, "cannot read the stream: {error}"),
            FileError::NotAStream => write!(f, "not a file of lightfoot's references"),
            FileError::Version(version) => {
                write!(f, "a reference file of version {version}; this program reads version {VERSION}")
            }
            FileError::Header => write!(f, "the reference file's header is damaged"),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message already holds the reader's words: a printed chain would repeat them.
            FileError::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}

/// How the readable part of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its end mark.
    Complete,
    /// The file stops between chunks: its writer did not finish.
    Unfinished,
    /// In the middle of the chunk that starts at this byte.
    Cut(u64),
    /// The chunk that starts at this byte is damaged.
    Damaged(u64),
}

/// Records of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The thread that made them.
    pub thread: u32,
    /// In program order.
    pub records: Vec<Record>,
}

/// Reads a stream.
pub struct Reader<R: Read> {
    input: R,
    header: Header,
    sites: Sites,
    at_byte: u64,
    ending: Option<Ending>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(mut input: R) -> Result<Reader<R>, FileError> {
        let mut magic = [0; 8];
        fill(&mut input, &mut magic)?.then_some(()).ok_or(FileError::NotAStream)?;
        if magic != MAGIC {
            return Err(FileError::NotAStream);
        }
        let mut version = [0; 4];
        fill(&mut input, &mut version)?.then_some(()).ok_or(FileError::Header)?;
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(FileError::Version(version));
        }
        let mut bytes = [0; HEADER_WORDS * 4];
        fill(&mut input, &mut bytes)?.then_some(()).ok_or(FileError::Header)?;
        let words = std::array::from_fn(|index| word(&bytes, index * 4));
        let header = Header::from_words(&words).ok_or(FileError::Header)?;
        let at_byte = (12 + HEADER_WORDS * 4) as u64;
        Ok(Reader { input, header, sites: Sites::default(), at_byte, ending: None })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The tables as far as they were read.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// How the file ended, once [`Reader::batch`] has returned `None`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The next records; `None` at the end, of which [`Reader::ending`] tells.
    ///
    /// # Errors
    /// When the underlying reader fails; a short or damaged file is an ending, no error.
    pub fn batch(&mut self) -> Result<Option<Batch>, FileError> {
        while self.ending.is_none() {
            if let Some(batch) = self.chunk()? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Hands all remaining records to `sink` and says how the file ended.
    ///
    /// # Errors
    /// When the underlying reader fails.
    pub fn replay(&mut self, sink: &mut impl Sink) -> Result<Ending, FileError> {
        while let Some(batch) = self.batch()? {
            sink.records(batch.thread, &batch.records);
        }
        Ok(self.ending.unwrap_or(Ending::Unfinished))
    }

    /// One chunk: its records, if it holds records.
    fn chunk(&mut self) -> Result<Option<Batch>, FileError> {
        let mut head = Vec::new();
        self.input.by_ref().take(16).read_to_end(&mut head)?;
        if head.len() < 16 {
            self.ending = Some(if head.is_empty() { Ending::Unfinished } else { Ending::Cut(self.at_byte) });
            return Ok(None);
        }
        let len_bytes = word(&head, 8) as usize;
        if len_bytes > PAYLOAD_BYTES_MAX || !len_bytes.is_multiple_of(ENTRY_BYTES) {
            self.ending = Some(Ending::Damaged(self.at_byte));
            return Ok(None);
        }
        let mut payload = Vec::new();
        self.input.by_ref().take(len_bytes as u64).read_to_end(&mut payload)?;
        if payload.len() < len_bytes {
            self.ending = Some(Ending::Cut(self.at_byte));
        } else if checksum(&head[..8], &payload) != word(&head, 12) {
            self.ending = Some(Ending::Damaged(self.at_byte));
        } else {
            let batch = self.payload([head[0], head[1], head[2], head[3]], word(&head, 4), &payload);
            self.at_byte += (16 + len_bytes) as u64;
            return Ok(batch);
        }
        Ok(None)
    }

    fn payload(&mut self, tag: [u8; 4], thread: u32, payload: &[u8]) -> Option<Batch> {
        let entries = payload.chunks_exact(ENTRY_BYTES).map(|entry| {
            let ip = u64::from(word(entry, 0)) | u64::from(word(entry, 4)) << 32;
            (ip, word(entry, 8), word(entry, 12))
        });
        match tag {
            SITE => self.sites.sites.extend(entries.map(|(ip, block, index)| Site { ip, block, index })),
            BLOCK => self.sites.blocks.extend(entries.map(|(ip, len_bytes, instructions)| Block {
                ip,
                len_bytes,
                instructions,
            })),
            RECORDS => {
                let records = entries.map(|(address, what, extra)| Record { address, what, extra }).collect();
                return Some(Batch { thread, records });
            }
            DONE if payload.is_empty() => self.ending = Some(Ending::Complete),
            _ => self.ending = Some(Ending::Damaged(self.at_byte)),
        }
        None
    }
}

/// Fills `bytes`; false where the input is too short.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> Result<bool, FileError> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
