//! The machine as a value, and the questions that consumers ask it.
//!
//! Fields are public because a machine is data; whoever builds one by hand calls [`Machine::check`] before passing it on.

use crate::{
    Behaviour, Cache, CacheKind, Error, FieldSource, Geometry, Origin, StoreMiss, Tlb, TlbKind, WritePolicy,
};
use serde::Serialize;
use std::ffi::OsStr;
use std::path::Path;

/// What events cost, declared and not measured:
/// `cycles = instructions * base_cycles_per_instruction + Σ misses * penalty_cycles + mispredictions * branch_miss_cycles`.
///
/// Penalties of misses stand with each [`Cache`] and [`Tlb`]; a miss adds its own level's penalty on top of those of the levels before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CycleModel {
    /// Cycles of an instruction that hits everywhere.
    pub base_cycles_per_instruction: f64,
    /// Cycles that a mispredicted branch adds; `None` where nobody declares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_miss_cycles: Option<u32>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Short name, `host` for this machine.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Nominal clock, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_mhz: Option<u32>,
    /// Logical CPUs of a core.
    pub threads_per_core: u32,
    /// Page sizes that programs can get, ascending; the first is the base page.
    pub page_bytes: Vec<u64>,
    /// Instruction sets, a sorted subset of [`crate::FEATURES`].
    pub features: Vec<String>,
    /// What events cost, where somebody declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<CycleModel>,
    /// Caches, by level, data before instructions.
    #[serde(rename = "cache")]
    pub caches: Vec<Cache>,
    /// TLBs, by level.
    #[serde(rename = "tlb")]
    pub tlbs: Vec<Tlb>,
    /// Origins of fields; see [`Machine::source_of`].
    #[serde(rename = "source")]
    pub sources: Vec<FieldSource>,
}

impl Machine {
    /// What `--machine` accepts: `host`, the name of a preset, or the path of a TOML file.
    ///
    /// # Errors
    /// When it is none of these, or the file is wrong.
    pub fn named(name: &OsStr) -> Result<Machine, Error> {
        if name == "host" {
            return Ok(Machine::host());
        }
        let path = Path::new(name);
        match name.to_str().map(Machine::preset) {
            Some(Ok(machine)) => Ok(machine),
            _ if path.exists() || path.extension().is_some_and(|e| e == "toml") => Machine::from_file(path),
            _ => Err(Error::Unknown { name: name.to_string_lossy().into_owned() }),
        }
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    /// When it cannot be read or describes no machine.
    pub fn from_file(path: &Path) -> Result<Machine, Error> {
        let unreadable = |e: std::io::Error| Error::Unreadable { path: path.into(), reason: e.to_string() };
        Machine::from_toml(&std::fs::read_to_string(path).map_err(unreadable)?, path)
    }

    /// Reads a description; `path` only serves error messages. The files in `machine/machines` are commented examples.
    ///
    /// # Errors
    /// With file, line and field, and what was expected there.
    pub fn from_toml(text: &str, path: &Path) -> Result<Machine, Error> {
        crate::read::machine(text, path)
    }

    /// The description as TOML: what [`Machine::from_toml`] reads back as an equal value.
    ///
    /// # Panics
    /// When a number exceeds TOML's signed 64 bits, which no checked machine has.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a checked machine has a TOML form")
    }

    /// The machine this runs on. Never fails: what is not reported is assumed, and [`Machine::source_of`] says so.
    pub fn host() -> Machine {
        crate::host::machine()
    }

    /// A preset by name.
    ///
    /// # Errors
    /// When there is none; the message lists them.
    pub fn preset(name: &str) -> Result<Machine, Error> {
        let preset = crate::PRESETS.iter().find(|preset| preset.name == name);
        preset.map(|preset| preset.machine()).ok_or_else(|| Error::Unknown { name: name.into() })
    }

    /// The innermost-to-outermost path of a load: data and unified caches by level.
    pub fn data_path(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(|cache| cache.holds_data())
    }

    /// The cache that loads and stores ask at `level` (1 is innermost).
    pub fn data_cache(&self, level: u8) -> Option<&Cache> {
        self.data_path().find(|cache| cache.level == level)
    }

    /// The cache that instruction fetches ask first.
    pub fn instruction_cache(&self) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.level == 1 && cache.holds_instructions())
    }

    /// The outermost cache that holds data.
    pub fn last_level(&self) -> Option<&Cache> {
        self.data_path().max_by_key(|cache| cache.level)
    }

    /// The TLB that loads and stores ask at `level` for pages of the base size.
    pub fn data_tlb(&self, level: u8) -> Option<&Tlb> {
        self.tlb(level, TlbKind::Data, self.base_page_bytes())
    }

    /// The TLB that instruction fetches ask at `level` for pages of the base size.
    pub fn instruction_tlb(&self, level: u8) -> Option<&Tlb> {
        self.tlb(level, TlbKind::Instruction, self.base_page_bytes())
    }

    /// The TLB at `level` for pages of `page_bytes`: one of this kind, else a unified one.
    pub fn tlb(&self, level: u8, kind: TlbKind, page_bytes: u64) -> Option<&Tlb> {
        let fits = |tlb: &&Tlb| tlb.level == level && tlb.translates(page_bytes);
        let of = |kind| self.tlbs.iter().filter(fits).find(|tlb| tlb.kind == kind);
        of(kind).or_else(|| of(TlbKind::Unified))
    }

    /// The smallest page.
    pub fn base_page_bytes(&self) -> u64 {
        self.page_bytes.first().copied().unwrap_or(4096)
    }

    /// Whether an instruction set is there, by its name in [`crate::FEATURES`].
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|name| name == feature)
    }

    /// Whether only the threads of one core use `cache`.
    pub fn is_private(&self, cache: &Cache) -> bool {
        cache.shared_by_cpus <= self.threads_per_core
    }

    /// How a field is known: `source_of("cache.L1D.ways")`. The longest matching entry wins, the later among equals.
    pub fn source_of(&self, field: &str) -> Option<&FieldSource> {
        self.sources.iter().filter(|source| source.covers(field)).max_by_key(|source| source.field.len())
    }

    /// The same machine with one cache replaced or, by `none`, removed. `level` is `l1d`, `l1i`, `l2` or `l3`; `text`
    /// is `SIZE,WAYS,LINE` and any words of [`Behaviour`]: `32K,8,64,plru`. What the level did with stores, its penalty, its sharing and what no word
    /// changes stay; a new level allocates and writes back.
    ///
    /// # Errors
    /// When level or text cannot be read, or the hierarchy no longer fits together.
    pub fn with_override(mut self, level: &str, text: &str) -> Result<Machine, Error> {
        let wrong = |problem| Error::Override { level: level.into(), text: text.into(), problem };
        let (number, kind) = match level.to_ascii_lowercase().as_str() {
            "l1d" => (1, CacheKind::Data),
            "l1i" => (1, CacheKind::Instruction),
            "l2" => (2, CacheKind::Unified),
            "l3" => (3, CacheKind::Unified),
            _ => return Err(wrong("the levels are l1i, l1d, l2 and l3".into())),
        };
        let place = self.caches.iter().position(|c| c.level == number && (c.kind == kind));
        if text.trim().eq_ignore_ascii_case("none") {
            place.map(|index| self.caches.remove(index));
        } else {
            let (shape, words) = split(text);
            let geometry: Geometry = shape.parse().map_err(wrong)?;
            let index = place.unwrap_or_else(|| self.insert(number, kind));
            self.caches[index].shape(geometry);
            for word in words {
                let behaviour = self.caches[index].behaviour.with_word(word).map_err(wrong)?;
                self.caches[index].behaviour = behaviour;
            }
        }
        self.check().map_err(|error| wrong(error.to_string()))?;
        self.note_override(number, kind, level, text);
        Ok(self)
    }

    /// Enters an empty cache in its place and says where.
    fn insert(&mut self, level: u8, kind: CacheKind) -> usize {
        let shared_by_cpus = self.threads_per_core;
        let (store_miss, write) = (StoreMiss::Allocate, WritePolicy::Back);
        let (size_bytes, ways, line_bytes, penalty_cycles) = (0, 1, 64, None);
        let cache = Cache {
            level,
            kind,
            size_bytes,
            ways,
            line_bytes,
            store_miss,
            write,
            penalty_cycles,
            shared_by_cpus,
            behaviour: Behaviour::default(),
        };
        self.caches.push(cache);
        self.sort_caches();
        self.caches.iter().position(|c| c.level == level && c.kind == kind).expect("it was just entered")
    }

    fn note_override(&mut self, level: u8, kind: CacheKind, option: &str, text: &str) {
        let Some(cache) = self.caches.iter().find(|c| c.level == level && c.kind == kind) else { return };
        let name = cache.name();
        let fields = ["size_bytes", "ways", "line_bytes", "replacement", "inclusion", "prefetch"];
        let said = if split(text).1.is_empty() { &fields[..3] } else { &fields };
        for field in said {
            let field = format!("cache.{name}.{field}");
            self.sources.retain(|source| source.field != field);
            self.sources.push(FieldSource::new(field, Origin::Declared, format!("--{option} {text}")));
        }
    }

    /// By level, data before instructions before unified.
    pub(crate) fn sort_caches(&mut self) {
        self.caches.sort_by_key(|cache| (cache.level, cache.kind as u8));
    }
}

/// `SIZE,WAYS,LINE` and the words behind it.
fn split(text: &str) -> (&str, Vec<&str>) {
    let third = text.match_indices(',').nth(2).map_or(text.len(), |(place, _)| place);
    let words = text[third..].split(',').skip(1).map(str::trim);
    (&text[..third], words.collect())
}

impl Cache {
    fn shape(&mut self, geometry: Geometry) {
        let Geometry { size_bytes, ways, line_bytes } = geometry;
        (self.size_bytes, self.ways, self.line_bytes) = (size_bytes, ways, line_bytes);
    }
}
