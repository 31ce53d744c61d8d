//! The class `Index` of the native module: an index of crate `search` over one of six key types, in
//! NumPy's order.

use crate::buffer::Buffer;
use crate::guard::released;
use crate::order::{for_key_type, Ordered, Side};
use crate::sorted::{queries_like, side_named, unsupported};
use lightfoot_search::{Error, KeyType, Options, KEY_TYPES};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Queries that are converted at a time: they stay in the first level of caches.
const CHUNK: usize = 1024;
/// Where a file's header has the number of its key type, and the bytes up to its end.
const TYPE_BYTES: Range<usize> = 12..16;

/// An index over sorted keys.
#[pyclass(frozen, module = "lightfoot._native")]
pub(crate) struct Index {
    keys: Keys,
}

enum Keys {
    U32(lightfoot_search::Index<u32>),
    I32(lightfoot_search::Index<i32>),
    U64(lightfoot_search::Index<u64>),
    I64(lightfoot_search::Index<i64>),
    F32(lightfoot_search::Index<f32>),
    F64(lightfoot_search::Index<f64>),
}

/// Calls generic code with the index, whatever its key type.
macro_rules! with_index {
    ($keys:expr, $index:ident => $work:expr) => {
        match $keys {
            Keys::U32($index) => $work,
            Keys::I32($index) => $work,
            Keys::U64($index) => $work,
            Keys::I64($index) => $work,
            Keys::F32($index) => $work,
            Keys::F64($index) => $work,
        }
    };
}

macro_rules! keys_from {
    ($($kind:ident $key:ty),*) => {$(
        impl From<lightfoot_search::Index<$key>> for Keys {
            fn from(index: lightfoot_search::Index<$key>) -> Keys {
                Keys::$kind(index)
            }
        }
    )*};
}
keys_from!(U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64);

#[pymethods]
impl Index {
    /// Builds from sorted keys.
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyAny>, threads: usize) -> PyResult<Index> {
        let buffer = Buffer::of("keys", keys)?;
        let keys = for_key_type!(buffer, keys => {
            released(py, || build(keys, threads).map(Keys::from))?.map_err(refusal)?
        }, else return Err(unsupported("keys", &buffer)));
        Ok(Index { keys })
    }

    /// Reads a file that `save` wrote, of any of the six key types.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Index> {
        let opened = released(py, || {
            let keys = match key_type(&path)? {
                KeyType::I32 => lightfoot_search::Index::<i32>::open(&path)?.into(),
                KeyType::U64 => lightfoot_search::Index::<u64>::open(&path)?.into(),
                KeyType::I64 => lightfoot_search::Index::<i64>::open(&path)?.into(),
                KeyType::F32 => lightfoot_search::Index::<f32>::open(&path)?.into(),
                KeyType::F64 => lightfoot_search::Index::<f64>::open(&path)?.into(),
                // Of what is no index at all, the reader says why.
                _ => Keys::U32(lightfoot_search::Index::open(&path)?),
            };
            Ok(Index { keys })
        })?;
        opened.map_err(|error| file_error(&path, error))
    }

    /// Writes the index file at `path`, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = released(py, || with_index!(&self.keys, index => index.save(&path)))?;
        saved.map_err(|error| file_error(&path, error))
    }

    fn __len__(&self) -> usize {
        with_index!(&self.keys, index => index.len())
    }

    /// The name of the key type in NumPy.
    fn dtype(&self) -> &'static str {
        match &self.keys {
            Keys::U32(_) => "uint32",
            Keys::I32(_) => "int32",
            Keys::U64(_) => "uint64",
            Keys::I64(_) => "int64",
            Keys::F32(_) => "float32",
            Keys::F64(_) => "float64",
        }
    }

    /// The bytes of the index.
    fn nbytes(&self) -> usize {
        with_index!(&self.keys, index => index.bytes())
    }

    /// The plan in words.
    fn explain(&self) -> String {
        with_index!(&self.keys, index => index.explain())
    }

    /// Writes the rank of each query of `v` to `out`.
    fn searchsorted(
        &self,
        py: Python<'_>,
        v: &Bound<'_, PyAny>,
        side: &str,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<()> {
        let (v, mut out, side) = (Buffer::of("v", v)?, Buffer::of("out", out)?, side_named(side)?);
        with_index!(&self.keys, index => {
            let queries = queries_of(index, &v)?;
            let ranks = out.ranks_mut(queries.len(), &[&v])?;
            released(py, || in_chunks(queries, ranks, threads, |queries, ranks| rank(index, queries, side, ranks)))
        })
    }

    /// Writes 1 to `out` for each query of `v` that equals a key, else 0.
    fn contains(
        &self,
        py: Python<'_>,
        v: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<()> {
        let (v, mut out) = (Buffer::of("v", v)?, Buffer::of("out", out)?);
        with_index!(&self.keys, index => {
            let queries = queries_of(index, &v)?;
            let found = out.elements_mut::<u8>(queries.len(), &[&v])?;
            released(py, || in_chunks(queries, found, threads, |queries, found| contains(index, queries, found)))
        })
    }

    /// Writes the keys at ranks `start` and behind to `out`.
    fn keys(&self, py: Python<'_>, start: usize, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut out = Buffer::of("out", out)?;
        let length = out.length();
        with_index!(&self.keys, index => {
            if start.saturating_add(length) > index.len() {
                let message = format!("keys: there are {} keys, got rank {start} and {length} more", index.len());
                return Err(PyValueError::new_err(message));
            }
            let keys = out.elements_mut(length, &[])?;
            released(py, || {
                let ranks = start..start + length;
                keys.iter_mut().zip(ranks).for_each(|(key, rank)| *key = index.get(rank).unwrap_or_default());
            })
        })
    }
}

/// Queries of the key type of an index.
fn queries_of<'a, K: Ordered>(_index: &lightfoot_search::Index<K>, v: &'a Buffer) -> PyResult<&'a [K]> {
    queries_like::<K>(v)
}

/// Builds an index of keys in NumPy's order.
fn build<K: Ordered>(keys: &[K], threads: usize) -> Result<lightfoot_search::Index<K>, Error> {
    let options = || Options { threads: Some(threads.max(1)), ..Options::default() };
    // NaNs in front are in total order where they are negative, but not in NumPy's order.
    let nan_in_front = keys.first().is_some_and(|key| key.is_nan());
    let built = lightfoot_search::Index::build_with(keys, &options());
    let reorder = matches!(built, Err(Error::Unsorted { .. })) || nan_in_front;
    if !reorder || keys.iter().all(|key| key.compare(&key.canonical()).is_eq()) {
        return built;
    }
    let canonical: Vec<K> = keys.iter().map(|key| key.canonical()).collect();
    lightfoot_search::Index::build_with(&canonical, &options())
}

/// Calls `work` on chunks of queries and answers, on up to `threads` threads.
fn in_chunks<K: Sync, A: Send>(
    queries: &[K],
    answers: &mut [A],
    threads: usize,
    work: impl Fn(&[K], &mut [A]) + Sync,
) {
    let chunk = queries.len().div_ceil(threads.max(1)).max(4 * CHUNK);
    if chunk >= queries.len() {
        return work(queries, answers);
    }
    let work = &work;
    std::thread::scope(|scope| {
        for (queries, answers) in queries.chunks(chunk).zip(answers.chunks_mut(chunk)) {
            scope.spawn(move || work(queries, answers));
        }
    });
}

/// Ranks of queries.
fn rank<K: Ordered>(index: &lightfoot_search::Index<K>, queries: &[K], side: Side, ranks: &mut [usize]) {
    for (queries, ranks) in queries.chunks(CHUNK).zip(ranks.chunks_mut(CHUNK)) {
        let mut moved = [queries[0]; CHUNK];
        let moved = &mut moved[..queries.len()];
        for (moved, query) in moved.iter_mut().zip(queries) {
            *moved = match side {
                Side::Left => query.first_equal(),
                Side::Right => query.behind_equal().unwrap_or(*query),
            };
        }
        index.batch(moved, ranks);
        if side == Side::Right {
            let last = ranks.iter_mut().zip(queries).filter(|(_, query)| query.behind_equal().is_none());
            last.for_each(|(rank, _)| *rank = index.len());
        }
    }
}

/// Whether queries equal keys: then their two ranks differ. NaN equals nothing.
fn contains<K: Ordered>(index: &lightfoot_search::Index<K>, queries: &[K], found: &mut [u8]) {
    let (mut left, mut right) = ([0; CHUNK], [0; CHUNK]);
    for (queries, found) in queries.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
        rank(index, queries, Side::Left, &mut left[..queries.len()]);
        rank(index, queries, Side::Right, &mut right[..queries.len()]);
        for (at, found) in found.iter_mut().enumerate() {
            *found = u8::from(left[at] < right[at] && !queries[at].is_nan());
        }
    }
}

/// The key type of an index file; any if the file does not say.
fn key_type(path: &Path) -> Result<KeyType, Error> {
    let mut head = Vec::new();
    // A pipe is refused when the file is opened, without waiting for its writer.
    if std::fs::metadata(path)?.is_file() {
        std::fs::File::open(path)?.take(TYPE_BYTES.end as u64).read_to_end(&mut head)?;
    }
    let code =
        head.get(TYPE_BYTES).map_or(0, |code| u32::from_le_bytes([code[0], code[1], code[2], code[3]]));
    let kind = (code as usize).checked_sub(1).and_then(|at| KEY_TYPES.get(at));
    Ok(kind.map_or(KeyType::U32, |(kind, _)| *kind))
}

fn refusal(error: Error) -> PyErr {
    match error {
        Error::Unsorted { position } => PyValueError::new_err(format!(
            "keys: the key at position {position} is smaller than the one before it; pass numpy.sort(keys)"
        )),
        other => PyValueError::new_err(format!("keys: {other}")),
    }
}

fn file_error(path: &Path, error: Error) -> PyErr {
    match error {
        Error::Io(error) => match error.raw_os_error() {
            // With a number, Python picks the subclass of OSError.
            Some(number) => PyOSError::new_err((number, system_message(&error), path.to_path_buf())),
            None => PyOSError::new_err(format!("{}: {error}", path.display())),
        },
        Error::OtherType { found, .. } => PyTypeError::new_err(format!(
            "{}: an index of {} keys, not of numbers",
            path.display(),
            found.name()
        )),
        other => PyValueError::new_err(format!("{}: {other}", path.display())),
    }
}

/// The system's words without the number that Rust appends.
fn system_message(error: &std::io::Error) -> String {
    let message = error.to_string();
    message.split(" (os error").next().unwrap_or_default().to_owned()
}
