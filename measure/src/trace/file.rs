//! The trace file: small, appended frame by frame, and readable up to wherever it was cut.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `LFTRACE` and 0x1A |
//! | 4 | [`VERSION`], little endian, as are all numbers |
//! | then frames of | |
//! | 4 | length of kind and body |
//! | 4 | FNV-1a of kind and body, 32 bits |
//! | 1 | kind: 1 the header (first, JSON), 2 a record, 3 the end (last, JSON), 4 names of functions (JSON), 5 what functions executed in the record before it; others are skipped |
//! | length - 1 | body |
//!
//! A record's body is a row of LEB128 numbers: sequence, start, dt, missed ticks, threads, then for
//! each metric a mark (0 not counted, 1 a delta, 2 a delta with its share) followed by delta,
//! enabled and running nanoseconds as the mark says. A thousand records of ten metrics are about 30
//! KB. Names of functions are a list that continues those of earlier frames; what functions
//! executed is a row of LEB128 pairs, the number of a name and its instructions.
//!
//! Reading stops at a frame that is incomplete or damaged: the frames before it are the trace, and
//! [`Cut`] describes the rest. The writer buffers nothing, so an interrupted run loses at most the
//! record that was being written.

use super::header::Header;
use super::record::{Cut, End, Record, Share, Value};
use super::whole::Trace;
use crate::Error;
use std::io::Write;

/// The version of the format that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"LFTRACE\x1a";
const PREFIX_BYTES: usize = MAGIC.len() + 4;
/// Length and checksum.
const FRAME_BYTES: usize = 8;

const HEADER: u8 = 1;
const RECORD: u8 = 2;
const END: u8 = 3;
const NAMES: u8 = 4;
const FUNCTIONS: u8 = 5;

/// Appends a trace to a file, record by record.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    metrics: usize,
    frame: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The error of the underlying writer.
    pub fn new(out: W, header: &Header) -> Result<Writer<W>, Error> {
        let mut writer = Writer { out, metrics: header.metrics.len(), frame: Vec::new() };
        let json = serde_json::to_vec(header).map_err(|error| Error::io("write the trace", error))?;
        let mut prefix = MAGIC.to_vec();
        prefix.extend_from_slice(&VERSION.to_le_bytes());
        writer.out.write_all(&prefix).map_err(|error| Error::io("write the trace", error))?;
        writer.put(HEADER, |body| body.extend_from_slice(&json))?;
        Ok(writer)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// The error of the underlying writer.
    ///
    /// # Panics
    /// When the record does not have one value per metric.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        assert_eq!(record.values.len(), self.metrics, "a record has one value per metric");
        self.put(RECORD, |body| encode_record(record, body))
    }

    /// Appends names of functions to those that were written before.
    ///
    /// # Errors
    /// The error of the underlying writer.
    pub fn names(&mut self, names: &[String]) -> Result<(), Error> {
        let json = serde_json::to_vec(names).map_err(|error| Error::io("write the trace", error))?;
        self.put(NAMES, |body| body.extend_from_slice(&json))
    }

    /// Appends what functions executed in the record that was written last: numbers of names, and
    /// instructions.
    ///
    /// # Errors
    /// The error of the underlying writer.
    pub fn functions(&mut self, instructions: &[(u32, u64)]) -> Result<(), Error> {
        self.put(FUNCTIONS, |body| {
            for (function, executed) in instructions {
                put_number(body, u64::from(*function));
                put_number(body, *executed);
            }
        })
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// The error of the underlying writer.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(|error| Error::io("write the trace", error))
    }

    /// Writes the end, and returns the underlying writer.
    ///
    /// # Errors
    /// The error of the underlying writer.
    pub fn finish(mut self, end: &End) -> Result<W, Error> {
        let json = serde_json::to_vec(end).map_err(|error| Error::io("write the trace", error))?;
        self.put(END, |body| body.extend_from_slice(&json))?;
        self.out.flush().map_err(|error| Error::io("write the trace", error))?;
        Ok(self.out)
    }

    /// Writes one frame in one call.
    fn put(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; FRAME_BYTES]);
        self.frame.push(kind);
        fill(&mut self.frame);
        let length = u32::try_from(self.frame.len() - FRAME_BYTES)
            .map_err(|_| Error::io("write the trace", std::io::Error::other("a record of 4 GiB")))?;
        let sum = checksum(&self.frame[FRAME_BYTES..]);
        self.frame[..4].copy_from_slice(&length.to_le_bytes());
        self.frame[4..8].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&self.frame).map_err(|error| Error::io("write the trace", error))
    }
}

impl Trace {
    /// The trace as the bytes of a whole file.
    ///
    /// # Panics
    /// When a record does not have one value per metric.
    pub fn encode(&self) -> Vec<u8> {
        let written = Writer::new(Vec::new(), &self.header).and_then(|mut writer| {
            if let Some(functions) = &self.functions {
                writer.names(&functions.names)?;
            }
            for (index, record) in self.records.iter().enumerate() {
                writer.record(record)?;
                if let Some(row) = self.functions.as_ref().and_then(|all| all.instructions.get(index)) {
                    writer.functions(row)?;
                }
            }
            match &self.end {
                Some(end) => writer.finish(end),
                None => Ok(writer.out),
            }
        });
        written.expect("memory takes everything")
    }
}

/// Reads a trace. One that is cut is read up to the cut.
///
/// # Errors
/// When there is no whole header: [`Error::Foreign`], [`Error::Newer`], [`Error::NoHeader`],
/// [`Error::Header`].
pub fn decode(bytes: &[u8]) -> Result<Trace, Error> {
    if bytes.len() < PREFIX_BYTES || bytes[..MAGIC.len()] != MAGIC {
        let begun = !bytes.is_empty()
            && bytes.len() < PREFIX_BYTES
            && MAGIC.starts_with(&bytes[..bytes.len().min(8)]);
        return Err(if begun { Error::NoHeader { bytes: bytes.len() as u64 } } else { Error::Foreign });
    }
    let version = number(&bytes[MAGIC.len()..]);
    if version > VERSION {
        return Err(Error::Newer { version, known: VERSION });
    }
    let mut frames = Frames { bytes, at: PREFIX_BYTES };
    let no_header = || Error::NoHeader { bytes: bytes.len() as u64 };
    let (HEADER, body) = frames.next_frame().map_err(|_| no_header())?.ok_or_else(no_header)? else {
        return Err(Error::Header { what: "the first frame is not a header".into() });
    };
    let header: Header =
        serde_json::from_slice(body).map_err(|error| Error::Header { what: error.to_string() })?;
    if header.interval.length == 0 {
        return Err(Error::Header { what: "the interval has length 0".into() });
    }
    let mut trace = Trace::new(header);
    let stopped = frames.read_into(&mut trace);
    // A cut may lie between a record and what its functions executed.
    if let Some(functions) = &mut trace.functions {
        functions.instructions.resize(trace.records.len(), Vec::new());
    }
    trace.cut = stopped.err().map(|(at, why)| Cut { at_byte: at as u64, of_bytes: bytes.len() as u64, why });
    Ok(trace)
}

/// Walks over frames.
struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    /// The next frame's kind and body; `None` at the very end.
    fn next_frame(&mut self) -> Result<Option<(u8, &'a [u8])>, &'static str> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let head = rest.get(..FRAME_BYTES).ok_or("the file ends inside a frame")?;
        let length = number(head) as usize;
        let frame = rest[FRAME_BYTES..].get(..length).ok_or("the file ends inside a frame")?;
        let (&kind, body) = frame.split_first().ok_or("a frame is empty")?;
        if checksum(frame) != number(&head[4..]) && !cfg!(fuzzing) {
            return Err("a frame's checksum does not match");
        }
        self.at += FRAME_BYTES + length;
        Ok(Some((kind, body)))
    }

    /// Reads up to the end frame. On failure returns the position in bytes of the damaged frame,
    /// and the reason.
    fn read_into(&mut self, trace: &mut Trace) -> Result<(), (usize, &'static str)> {
        loop {
            let at = self.at;
            match self.next_frame().map_err(|why| (at, why))? {
                None => {
                    return Err((at, "the file has no end: the measurement was killed or is still running"))
                }
                Some((RECORD, body)) => {
                    let record = decode_record(body, trace.header.metrics.len());
                    trace.records.push(record.ok_or((at, "a record does not fit the header"))?);
                }
                Some((NAMES, body)) => {
                    let names: Option<Vec<String>> = serde_json::from_slice(body).ok();
                    let names = names.ok_or((at, "names of functions cannot be read"))?;
                    trace.functions.get_or_insert_default().names.extend(names);
                }
                Some((FUNCTIONS, body)) => {
                    decode_functions(body, trace).ok_or((at, "functions do not fit their record"))?;
                }
                Some((END, body)) => {
                    let end: Option<End> = serde_json::from_slice(body).ok();
                    let end = end.filter(|end| end.totals.len() == trace.header.metrics.len());
                    trace.end = Some(end.ok_or((at, "the end does not fit the header"))?);
                    return match self.at == self.bytes.len() {
                        true => Ok(()),
                        false => Err((self.at, "bytes follow the end")),
                    };
                }
                Some(_) => {}
            }
        }
    }
}

fn encode_record(record: &Record, out: &mut Vec<u8>) {
    for number in
        [record.sequence, record.start, record.dt, record.missed_ticks.into(), record.threads.into()]
    {
        put_number(out, number);
    }
    for value in &record.values {
        match (value.delta, value.share) {
            (None, _) => out.push(0),
            (Some(delta), None) => {
                out.push(1);
                put_number(out, delta);
            }
            (Some(delta), Some(share)) => {
                out.push(2);
                for number in [delta, share.enabled_ns, share.running_ns] {
                    put_number(out, number);
                }
            }
        }
    }
}

fn decode_record(mut body: &[u8], metrics: usize) -> Option<Record> {
    let from = &mut body;
    let mut record = Record {
        sequence: take_number(from)?,
        start: take_number(from)?,
        dt: take_number(from)?,
        missed_ticks: u32::try_from(take_number(from)?).ok()?,
        threads: u32::try_from(take_number(from)?).ok()?,
        // A body has at least a byte per metric, so a forged header cannot ask for more memory than
        // the file is long.
        values: Vec::with_capacity(metrics.min(from.len())),
    };
    for _ in 0..metrics {
        record.values.push(decode_value(from)?);
    }
    body.is_empty().then_some(record)
}

/// Adds what functions executed in the last record; `None` if it does not fit the trace.
fn decode_functions(mut body: &[u8], trace: &mut Trace) -> Option<()> {
    let functions = trace.functions.as_mut()?;
    let record = trace.records.len().checked_sub(1)?;
    let mut row = Vec::new();
    while !body.is_empty() {
        let function = u32::try_from(take_number(&mut body)?).ok()?;
        functions.names.get(function as usize)?;
        row.push((function, take_number(&mut body)?));
    }
    functions.instructions.resize(record, Vec::new());
    functions.instructions.push(row);
    Some(())
}

fn decode_value(from: &mut &[u8]) -> Option<Value> {
    let (&mark, rest) = from.split_first()?;
    *from = rest;
    Some(match mark {
        0 => Value { delta: None, share: None },
        1 => Value::whole(take_number(from)?),
        2 => {
            let delta = Some(take_number(from)?);
            let share = Share { enabled_ns: take_number(from)?, running_ns: take_number(from)? };
            Value { delta, share: Some(share) }
        }
        _ => return None,
    })
}

/// Appends a number as LEB128.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The FNV-1a checksum. Source: Fowler, Noll, Vo 1991.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
