//! Lines that were looked up, kept on disk from run to run.
//!
//! **Problem.** Debug information of a C library has megabytes, of which a short program needs the
//! lines of some hundred blocks; reading it takes longer than the program runs, in each run again.
//! **Idea.** The frames of blocks that were found are kept by file, and the next run reads those.
//! Frames enter [`Sources`] when a block is asked for, as if they had just been found, so reports
//! are the same to the last byte. **Trusted** is what lies in a private folder, names this build of
//! the program and the same file with the same debug file (device, inode, size, times), and whose
//! numbers are consistent. Anything else is looked up again. **Leaves out** code without a file.

use crate::numbers::Multiply;
use crate::source::{Frame, SourceFrame, Sources};
use private_folder::PrivateFolder;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::path::Path;
use std::time::SystemTime;

const MAGIC: &[u8; 8] = b"lflines1";
/// The folder of these files, within that of kept translations. That one is never made for lines:
/// where nothing may be kept of a program, no folder appears.
const WITHIN: &str = "lines";
/// Ends the names of files.
const ENDING: &str = ".lines";
/// The most bytes of a file; larger ones are neither read nor written.
const FILE_BYTES_MAX: usize = 32 << 20;
/// The most bytes in a folder; files that were not used for the longest time go first.
const FOLDER_BYTES_MAX: u64 = 128 << 20;

/// By link address of a block: the frames of its instructions.
pub(crate) type Blocks = BTreeMap<u64, Vec<Option<u32>>>;

/// What is kept of one file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct KeptLines {
    files: Vec<String>,
    names: Vec<String>,
    /// A frame's caller stands before it.
    frames: Vec<SourceFrame>,
    /// The numbers in [`Sources`] of frames that were asked for.
    numbers: Vec<Option<u32>>,
    blocks: HashMap<u64, Vec<Option<u32>>>,
}

impl KeptLines {
    /// Reads what is kept of the file at `path`; `None` if there is nothing, or not of the file as
    /// `identity` describes it.
    pub(crate) fn read(folder: &Path, path: &Path, identity: &[u64]) -> Option<KeptLines> {
        decode(&read_file(folder, path, ENDING)?, path, identity)
    }

    /// Whether at least `count` frames of the block at this link address are kept.
    pub(crate) fn has(&self, address: u64, count: usize) -> bool {
        self.blocks.get(&address).is_some_and(|frames| frames.len() >= count)
    }

    /// The numbers in `sources` of the first `count` frames of a block that is kept.
    pub(crate) fn frames(
        &mut self,
        (address, count): (u64, usize),
        sources: &mut Sources,
        mut found: impl FnMut(Option<u32>),
    ) {
        let KeptLines { files, names, frames, numbers, blocks } = self;
        numbers.resize(frames.len(), None);
        for own in blocks.get(&address).into_iter().flatten().take(count) {
            let number = own.and_then(|own| {
                let known = &mut numbers[own as usize];
                if known.is_none() {
                    *known = enter(files, names, frames, own, sources);
                }
                *known
            });
            found(number);
        }
    }

    /// Adds all kept blocks to `blocks`, which has numbers of `sources`.
    pub(crate) fn add_to(&mut self, blocks: &mut Blocks, sources: &mut Sources) {
        let all: Vec<(u64, usize)> = self.blocks.iter().map(|(at, frames)| (*at, frames.len())).collect();
        for (address, count) in all {
            if blocks.get(&address).is_none_or(|known| known.len() < count) {
                let mut frames = Vec::with_capacity(count);
                self.frames((address, count), sources, |frame| frames.push(frame));
                blocks.insert(address, frames);
            }
        }
    }
}

/// Enters frame `own` and its callers, as if debug information had just shown them.
fn enter(
    files: &[String],
    names: &[String],
    frames: &[SourceFrame],
    own: u32,
    sources: &mut Sources,
) -> Option<u32> {
    let chain = std::iter::successors(Some(frames[own as usize]), |frame| {
        frame.caller.map(|caller| frames[caller as usize])
    });
    let frame = |frame: SourceFrame| Frame {
        function: frame.inlined.map(|name| names[name as usize].clone()),
        file: Some(&files[frame.file as usize]),
        line: Some(frame.line),
    };
    sources.enter(&chain.map(frame).collect::<Vec<_>>())
}

/// Writes the frames of blocks of the file at `path`. Nobody learns if that fails, because nothing
/// depends on it.
pub(crate) fn write(folder: &Path, (path, identity): (&Path, &[u64]), blocks: &Blocks, sources: &Sources) {
    write_file(folder, path, ENDING, &encode(path, identity, blocks, sources));
}

/// Reads what is kept of the file at `path` in a file with this ending.
pub(crate) fn read_file(folder: &Path, path: &Path, ending: &str) -> Option<Vec<u8>> {
    let (file, about) = PrivateFolder::open(folder)?.inner(WITHIN)?.file(&name(path, ending))?;
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).ok()?.min(FILE_BYTES_MAX));
    (&file).take(FILE_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
    // Making room goes by these times.
    let _ = file.set_modified(SystemTime::now());
    Some(bytes)
}

/// Writes the file with this ending for the file at `path`.
pub(crate) fn write_file(folder: &Path, path: &Path, ending: &str, bytes: &[u8]) {
    if bytes.len() > FILE_BYTES_MAX {
        return;
    }
    let folder = PrivateFolder::open(folder).and_then(|around| around.make_inner(WITHIN));
    let Some(folder) = folder else { return };
    let name = name(path, ending);
    let unfinished = format!("{name}.{}.tmp", std::process::id());
    // One that a killed process of this number has left.
    let _ = folder.remove(&unfinished);
    let written = folder.create(&unfinished).and_then(|mut file| file.write_all(bytes));
    if written.and_then(|()| folder.rename(&unfinished, &name)).is_err() {
        let _ = folder.remove(&unfinished);
    }
    bound(&folder, ending);
}

/// Removes files with this ending that were not used for the longest time, until the rest has room.
fn bound(folder: &PrivateFolder, ending: &str) {
    let Ok(mut files) = folder.files() else { return };
    files.retain(|file| file.name.len() == 16 + ending.len() && file.name.ends_with(ending));
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    files.sort_unstable_by_key(|file| file.modified);
    for file in files {
        if total > FOLDER_BYTES_MAX && folder.remove(&file.name).is_ok() {
            total -= file.bytes;
        }
    }
}

/// The name of the file for a file at `path`.
fn name(path: &Path, ending: &str) -> String {
    format!("{:016x}{ending}", hash(path.as_os_str().as_encoded_bytes()))
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = Multiply::default();
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| hasher.write_u64(u64::from_le_bytes(*word)));
    hasher.write(rest);
    hasher.write_u64(bytes.len() as u64);
    hasher.finish()
}

/// Numbers in the order of their first use.
#[derive(Default)]
struct Renumbered {
    all: Vec<u32>,
    new: HashMap<u32, u32>,
}

impl Renumbered {
    fn of(&mut self, old: u32) -> u32 {
        *self.new.entry(old).or_insert_with(|| {
            self.all.push(old);
            self.all.len() as u32 - 1
        })
    }
}

fn encode(path: &Path, identity: &[u64], blocks: &Blocks, sources: &Sources) -> Vec<u8> {
    let mut used: Vec<u32> = Vec::new();
    for &frame in blocks.values().flatten().flatten() {
        if used.last() != Some(&frame) {
            let callers = std::iter::successors(Some(frame), |&number| sources.frame(number).caller);
            used.extend(callers);
        }
    }
    // A caller got its number before the frames within it.
    used.sort_unstable();
    used.dedup();
    let own = |number: u32| used.binary_search(&number).unwrap_or_default() as u32;
    let (mut files, mut names) = (Renumbered::default(), Renumbered::default());
    let mut frames = Vec::new();
    for &number in &used {
        let SourceFrame { file, line, inlined, caller } = sources.frame(number);
        let optional = [inlined.map(|name| names.of(name)), caller.map(own)];
        put(
            &mut frames,
            [files.of(file), line].into_iter().chain(optional.map(|one| one.map_or(0, |n| n + 1))),
        );
    }
    encoded(MAGIC, path, identity, |body| {
        for (numbers, texts) in [(&files, sources.files()), (&names, sources.names())] {
            put(body, [numbers.all.len() as u32]);
            numbers.all.iter().for_each(|&number| put_text(body, texts[number as usize].as_bytes()));
        }
        put(body, [used.len() as u32]);
        body.extend(frames);
        put(body, [blocks.len() as u32]);
        for (&address, frames) in blocks {
            put(body, [address as u32, (address >> 32) as u32, frames.len() as u32]);
            put(body, frames.iter().map(|frame| frame.map_or(0, |frame| own(frame) + 1)));
        }
    })
}

/// The bytes of a file: magic, sum, the file that it is about, and what `fill` adds.
pub(crate) fn encoded(
    magic: &[u8; 8],
    path: &Path,
    identity: &[u64],
    fill: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut body = Vec::new();
    put_text(&mut body, path.as_os_str().as_encoded_bytes());
    put(&mut body, identity.iter().flat_map(|&number| [number as u32, (number >> 32) as u32]));
    fill(&mut body);
    let mut bytes = magic.to_vec();
    bytes.extend(hash(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn put(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put(out, [text.len() as u32]);
    out.extend(text);
}

/// A reader of what `fill` added to [`encoded`], if the bytes are whole and about the same file.
pub(crate) fn decoded<'a>(
    bytes: &'a [u8],
    magic: &[u8; 8],
    path: &Path,
    identity: &[u64],
) -> Option<Reader<'a>> {
    let rest = bytes.strip_prefix(magic)?;
    let (sum, body) = rest.split_at_checked(8)?;
    if sum != hash(body).to_le_bytes() {
        return None;
    }
    let mut reader = Reader(body);
    let same_path = reader.text()? == path.as_os_str().as_encoded_bytes();
    let same_file = identity.iter().all(|&number| reader.long() == Some(number));
    (same_path && same_file).then_some(reader)
}

fn decode(bytes: &[u8], path: &Path, identity: &[u64]) -> Option<KeptLines> {
    let mut reader = decoded(bytes, MAGIC, path, identity)?;
    let texts = |reader: &mut Reader<'_>| -> Option<Vec<String>> {
        let count = reader.count(4)?;
        (0..count).map(|_| String::from_utf8(reader.text()?.to_vec()).ok()).collect()
    };
    let (files, names) = (texts(&mut reader)?, texts(&mut reader)?);
    let count = reader.count(16)?;
    let mut frames = Vec::with_capacity(count);
    for index in 0..count {
        let (file, line) = (reader.word()?, reader.word()?);
        let (inlined, caller) = (reader.word()?.checked_sub(1), reader.word()?.checked_sub(1));
        let fits = (file as usize) < files.len()
            && inlined.is_none_or(|name| (name as usize) < names.len())
            && caller.is_none_or(|caller| (caller as usize) < index);
        fits.then_some(())?;
        frames.push(SourceFrame { file, line, inlined, caller });
    }
    let count = reader.count(12)?;
    let mut blocks = HashMap::with_capacity(count);
    for _ in 0..count {
        let address = reader.long()?;
        let own = (0..reader.count(4)?).map(|_| Some(reader.word()?.checked_sub(1)));
        let own = own.collect::<Option<Vec<Option<u32>>>>()?;
        let fits = own.iter().flatten().all(|&frame| (frame as usize) < frames.len());
        fits.then_some(())?;
        blocks.insert(address, own);
    }
    reader.is_empty().then_some(KeptLines { files, names, frames, numbers: Vec::new(), blocks })
}

/// Reads numbers and texts; `None` if the bytes end too early.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    /// The number of items that follow and take at least `item_bytes` each: a wrong one is refused
    /// before it asks for memory.
    fn count(&mut self, item_bytes: usize) -> Option<usize> {
        let count = self.word()? as usize;
        (count <= self.0.len() / item_bytes).then_some(count)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let bytes = self.word()? as usize;
        self.take(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32) -> Frame<'static> {
        Frame { function: Some(function.into()), file: Some("a.c"), line: Some(line) }
    }

    /// Frames of three blocks, among other things that sources hold.
    fn found() -> (Sources, Blocks) {
        let mut sources = Sources::default();
        sources.enter(&[frame("other", 1), frame("another", 2)]);
        let inlined = sources.enter(&[frame("inner", 3), frame("outer", 10)]);
        let unknown = Frame { file: None, line: None, ..frame("outer", 0) };
        let plain = sources.enter(&[Frame { file: Some("b.c"), ..frame("f", 7) }]);
        let half = sources.enter(&[frame("inner", 4), unknown]);
        let blocks = [(0x1000, vec![inlined, inlined, None, plain]), (1 << 40, vec![half]), (8, vec![])];
        (sources, blocks.into())
    }

    fn chains(sources: &Sources, frames: &[Option<u32>]) -> Vec<Vec<(String, u32, Option<String>)>> {
        let text = |frame: SourceFrame| {
            let inlined = frame.inlined.map(|name| sources.names()[name as usize].clone());
            (sources.files()[frame.file as usize].clone(), frame.line, inlined)
        };
        let chain = |number: u32| sources.chain(number).map(text).collect();
        frames.iter().map(|frame| frame.map(chain).unwrap_or_default()).collect()
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        let (sources, blocks) = found();
        let (path, identity) = (Path::new("/lib/a.so"), [7, u64::MAX]);
        assert_eq!(KeptLines::read(place, path, &identity), None);
        write(place, (path, &identity), &blocks, &sources);
        let mut kept = KeptLines::read(place, path, &identity).unwrap();
        let mut again = Sources::default();
        for (&address, frames) in &blocks {
            assert!(kept.has(address, frames.len()) && !kept.has(address, frames.len() + 1));
            for count in [frames.len(), frames.len() / 2] {
                let mut read = Vec::new();
                kept.frames((address, count), &mut again, |frame| read.push(frame));
                assert_eq!(chains(&again, &read), chains(&sources, &frames[..count]));
            }
        }
        assert!(!again.files().contains(&"other".to_owned()), "only what is used is kept");
        let mut all = Blocks::from([(8, Vec::new())]);
        kept.add_to(&mut all, &mut again);
        assert_eq!(all.len(), blocks.len());
        // Another file, or the file after a change.
        assert_eq!(KeptLines::read(place, Path::new("/lib/b.so"), &identity), None);
        assert_eq!(KeptLines::read(place, path, &[7, 8]), None);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let (sources, blocks) = found();
        let (path, identity) = (Path::new("a"), [1]);
        let bytes = encode(path, &identity, &blocks, &sources);
        assert!(decode(&bytes, path, &identity).is_some());
        let body = MAGIC.len() + 8;
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at], path, &identity).is_none(), "{at}");
            for change in [1, 0x80, 0xff] {
                let mut wrong = bytes.clone();
                wrong[at] ^= change;
                assert!(decode(&wrong, path, &identity).is_none(), "{at}");
                // With the right sum, numbers still lead nowhere but to what exists.
                if at >= body {
                    let sum = hash(&wrong[body..]).to_le_bytes();
                    wrong[MAGIC.len()..body].copy_from_slice(&sum);
                    if let Some(mut kept) = decode(&wrong, path, &identity) {
                        kept.add_to(&mut Blocks::new(), &mut Sources::default());
                    }
                }
            }
        }
    }
}
