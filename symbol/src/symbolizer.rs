//! Finds functions, libraries and source lines of a running program's addresses. All of them get
//! numbers, and everything that was read of a file is kept.

use crate::generated::GeneratedCode;
use crate::image::Image;
use crate::kept_lines::{self, Blocks, KeptLines};
use crate::numbers::ByNumber;
use crate::source::Sources;
use crate::sparse::Sparse;
use crate::strings::FunctionName;
use crate::vdso;
use instrument::Module;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A function. Its number is an index into [`Symbolizer::functions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Index into [`Symbolizer::libraries`].
    pub library: usize,
    /// The mangled name, as the file has it.
    pub name: FunctionName,
    /// The link address; 0 if there is no file.
    pub address: u64,
}

/// The function that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRange {
    /// Index into [`Symbolizer::functions`].
    pub function: usize,
    /// The addresses in the running program around the given one that belong to the same function.
    pub range: Range<u64>,
}

/// An executable, a shared library, or code without a file.
#[derive(Debug)]
pub struct Library {
    /// Its path in the program's memory map.
    pub path: PathBuf,
    image: Option<Image>,
    lines: Lines,
    nameless: Option<usize>,
}

/// What is kept of a library's lines from run to run.
#[derive(Debug, Default)]
enum Lines {
    /// Nothing was asked for yet.
    #[default]
    Unasked,
    /// All that was asked for was kept, if anything is.
    Kept(Option<KeptLines>),
    /// Some lines were not kept.
    New(Option<KeptLines>),
}

impl Library {
    /// The name for reports.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// The number of the function that stands for code of the library of which nothing has a name,
    /// if there was any.
    pub fn nameless(&self) -> Option<usize> {
        self.nameless
    }

    /// Whether its file was read and has names of exported functions only.
    pub fn is_stripped(&self) -> bool {
        self.image.as_ref().is_some_and(Image::is_stripped)
    }
}

/// Finds names by addresses, and keeps all that it has read.
#[derive(Debug, Default)]
pub struct Symbolizer {
    libraries: Vec<Library>,
    by_path: HashMap<PathBuf, usize>,
    /// Number of the library that was used last: hashing a path would take longer than the rest of
    /// a look-up.
    last: usize,
    functions: Vec<Function>,
    generated: GeneratedCode,
    /// Numbers of functions of generated code, by library and name: a function that is compiled
    /// again, or by several processes, is one function.
    generated_functions: HashMap<(usize, String), usize>,
    sources: Sources,
    /// Innermost frames by library and link address.
    frames: ByNumber<(usize, u64), Option<u32>>,
    /// By library and link address of a block: where the frames of its instructions begin in
    /// `frames_of_blocks`, and how many there are.
    blocks: ByNumber<(usize, u64), (usize, usize)>,
    frames_of_blocks: Vec<Option<u32>>,
    /// The folder of kept translations, within which lines are kept, if they are.
    lines_in: Option<PathBuf>,
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// All functions that were named so far.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// All libraries that were seen so far.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// Reads the names of generated code that the processes of `modules` have written for
    /// profilers: `/tmp/perf-PID.map`, and `jit-PID.dump` if it is mapped. Without this call, or
    /// where there are none, generated code has one name, that of its module. To be called when the
    /// program has ended, because names are read once.
    ///
    /// ```no_run
    /// # let modules: Vec<instrument::Module> = Vec::new();
    /// let mut symbols = lightfoot_symbol::Symbolizer::new();
    /// symbols.name_generated(&modules);
    /// ```
    pub fn name_generated(&mut self, modules: &[Module]) {
        self.generated.read(modules);
    }

    /// The function at address `ip`, which lies in `module`.
    pub fn function_at(&mut self, module: &Module, ip: u64) -> FunctionRange {
        let index = self.library(&module.path);
        if let Some(found) = self.generated_at(index, module, ip) {
            return found;
        }
        let library = &mut self.libraries[index];
        let functions = &mut self.functions;
        if let Some(image) = &mut library.image {
            let offset = ip.wrapping_sub(module.start).wrapping_add(module.file_offset);
            if let Some(address) = image.link_address(offset) {
                let span = image.find(address);
                let intern = |name: FunctionName, address| {
                    functions.push(Function { library: index, name, address });
                    functions.len() - 1
                };
                let function = image.function(&span, intern);
                let bias = ip.wrapping_sub(address);
                let range = span.range.start.wrapping_add(bias)..span.range.end.wrapping_add(bias);
                return FunctionRange { function, range };
            }
        }
        FunctionRange { function: self.nameless(index), range: module.start..module.end }
    }

    /// The function of generated code at `ip`, if names of its process were read.
    fn generated_at(&mut self, library: usize, module: &Module, ip: u64) -> Option<FunctionRange> {
        let (name, range) = self.generated.find(module.process?, ip)?;
        let range = range.start.max(module.start)..range.end.min(module.end);
        let Some(name) = name else {
            return Some(FunctionRange { function: self.nameless(library), range });
        };
        let function = *self.generated_functions.entry((library, name.to_owned())).or_insert_with(|| {
            self.functions.push(Function { library, name: name.to_owned().into(), address: 0 });
            self.functions.len() - 1
        });
        Some(FunctionRange { function, range })
    }

    /// The innermost frame of the instruction at `ip`, as a number of [`Symbolizer::sources`];
    /// `None` if debug information does not cover it.
    pub fn frame(&mut self, module: &Module, ip: u64) -> Option<u32> {
        let index = self.library(&module.path);
        let image = self.libraries[index].image.as_mut()?;
        let address = image.link_address(ip.wrapping_sub(module.start).wrapping_add(module.file_offset))?;
        let sources = &mut self.sources;
        *self.frames.entry((index, address)).or_insert_with(|| image.frame(address, sources))
    }

    /// Appends to `out` the innermost frames of instructions of the block at `ip`. `offsets` are
    /// their ascending offsets from there in bytes.
    ///
    /// Copies of a block, also those in other processes, share one look-up.
    pub fn frames(
        &mut self,
        module: &Module,
        ip: u64,
        offsets: impl ExactSizeIterator<Item = u16>,
        out: &mut Vec<Option<u32>>,
    ) {
        let (index, count) = (self.library(&module.path), offsets.len());
        let Library { path, image, lines, .. } = &mut self.libraries[index];
        let address = |image: &Image| {
            image.link_address(ip.wrapping_sub(module.start).wrapping_add(module.file_offset))
        };
        let Some((image, first)) =
            image.as_mut().and_then(|image| address(image).map(|first| (image, first)))
        else {
            return out.extend(std::iter::repeat_n(None, count));
        };
        let known = self.blocks.get(&(index, first)).filter(|(_, known)| *known >= count);
        let start = known.map_or(self.frames_of_blocks.len(), |(start, _)| *start);
        if known.is_none() {
            if let (Lines::Unasked, Some(folder)) = (&*lines, &self.lines_in) {
                let identity = image.identity();
                *lines = Lines::Kept(identity.and_then(|own| KeptLines::read(folder, path, &own)));
            }
            let push = |frame| self.frames_of_blocks.push(frame);
            match lines {
                Lines::Kept(Some(kept)) | Lines::New(Some(kept)) if kept.has(first, count) => {
                    kept.frames((first, count), &mut self.sources, push);
                }
                _ => {
                    let addresses = offsets.map(|offset| first + u64::from(offset));
                    image.frames(addresses, &mut self.sources, push);
                    if let (Lines::Kept(kept), true) = (&mut *lines, image.has_lines()) {
                        *lines = Lines::New(kept.take());
                    }
                }
            }
            self.blocks.insert((index, first), (start, count));
        }
        out.extend_from_slice(&self.frames_of_blocks[start..][..count]);
    }

    /// Uses the lines and tables of symbols that former runs have found and kept in this folder of
    /// kept translations, or none. They lie in the folder `lines` there, which is made if the one
    /// around it is there, this user's own, and not writable for others. To be called before
    /// anything is looked up.
    pub fn keep_lines_in(&mut self, folder: Option<PathBuf>) {
        self.lines_in = folder;
    }

    /// Keeps the lines that [`Symbolizer::frames`] has found for later runs, and large tables of
    /// symbols, if [`Symbolizer::keep_lines_in`] named a folder. Costs nothing if all were kept
    /// already.
    pub fn keep_lines(&mut self) {
        let Symbolizer { libraries, sources, blocks, frames_of_blocks, lines_in, .. } = self;
        let Some(folder) = lines_in else { return };
        for (index, library) in libraries.iter_mut().enumerate() {
            let path = &library.path;
            library.image.iter_mut().for_each(|image| image.keep_symbols(folder, path));
            let Lines::New(kept) = &mut library.lines else { continue };
            let Some(identity) = library.image.as_ref().and_then(Image::identity) else { continue };
            let own = blocks.iter().filter(|((library, _), _)| *library == index);
            let own = own.map(|((_, address), (start, count))| {
                (*address, frames_of_blocks[*start..][..*count].to_vec())
            });
            let mut all: Blocks = own.collect();
            if let Some(kept) = kept {
                kept.add_to(&mut all, sources);
            }
            kept_lines::write(folder, (&library.path, &identity), &all, sources);
        }
    }

    /// The frames whose numbers [`Symbolizer::frame`] and [`Symbolizer::frames`] return.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    fn library(&mut self, path: &Path) -> usize {
        if self.libraries.get(self.last).is_some_and(|library| library.path.as_os_str() == path.as_os_str()) {
            return self.last;
        }
        if let Some(&index) = self.by_path.get(path) {
            self.last = index;
            return index;
        }
        let image = if path == Path::new("[vdso]") {
            vdso::bytes().and_then(|bytes| Image::new(path, Sparse::whole(bytes), None))
        } else if path.is_absolute() {
            Sparse::open(path).and_then(|file| Image::new(path, file, self.lines_in.as_deref()))
        } else {
            None
        };
        let lines = Lines::Unasked;
        self.libraries.push(Library { path: path.to_owned(), image, lines, nameless: None });
        self.by_path.insert(path.to_owned(), self.libraries.len() - 1);
        self.libraries.len() - 1
    }

    /// The number of the single function that represents a library without a readable file.
    fn nameless(&mut self, index: usize) -> usize {
        let library = &mut self.libraries[index];
        let functions = &mut self.functions;
        *library.nameless.get_or_insert_with(|| {
            let name = library.path.file_name().unwrap_or(library.path.as_os_str());
            functions.push(Function {
                library: index,
                name: name.to_string_lossy().into_owned().into(),
                address: 0,
            });
            functions.len() - 1
        })
    }
}
