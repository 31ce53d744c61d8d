//! Changes one level of a machine, for options such as `--l1d 48K,12,64,plru`.

use crate::{
    Behaviour, Cache, CacheKind, Error, FieldSource, Geometry, Machine, Origin, StoreMiss, WritePolicy,
};

impl Machine {
    /// Replaces one cache of the machine, or removes it if `text` is `none`. `level` is `l1d`,
    /// `l1i`, `l2` or `l3`; `text` is `SIZE,WAYS,LINE` and any words of [`Behaviour`]:
    /// `32K,8,64,plru`. A level that is replaced keeps its write policies, penalty, sharing, and
    /// the behaviour that no word changes; a new level is write-allocate and write-back.
    ///
    /// # Errors
    /// When level or text cannot be read, or the hierarchy no longer fits together.
    pub fn with_override(self, level: &str, text: &str) -> Result<Machine, Error> {
        self.with_overrides(&[(level, text)])
    }

    /// Replaces several caches as [`Machine::with_override`] does one. Only the result must fit
    /// together, so the order does not matter.
    ///
    /// # Errors
    /// When a level or text cannot be read, or the hierarchy no longer fits together.
    pub fn with_overrides(self, overrides: &[(&str, &str)]) -> Result<Machine, Error> {
        let replaced = |machine: Machine, (level, text): &(&str, &str)| machine.replaced(level, text);
        let machine = overrides.iter().try_fold(self, replaced)?;
        let Err(error) = machine.check() else { return Ok(machine) };
        let problem = error.to_string();
        // The override of the level that the problem names, else the last one.
        let named =
            |(level, _): &&(&str, &str)| problem.contains(&format!("cache.{}.", level.to_uppercase()));
        match overrides.iter().find(named).or(overrides.last()) {
            Some((level, text)) => {
                Err(Error::Override { level: (*level).into(), text: (*text).into(), problem })
            }
            None => Err(error),
        }
    }

    /// Replaces one cache, and leaves the hierarchy unchecked.
    fn replaced(mut self, level: &str, text: &str) -> Result<Machine, Error> {
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
        self.note_override(number, kind, level, text);
        Ok(self)
    }

    /// Inserts an empty cache in order and returns its index.
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
        let fields = [
            "size_bytes",
            "ways",
            "line_bytes",
            "replacement",
            "inclusion",
            "prefetch",
            "prefetch_late_touches",
            "slice_masks",
        ];
        let overridden = if split(text).1.is_empty() { &fields[..3] } else { &fields };
        for field in overridden {
            let field = format!("cache.{name}.{field}");
            self.sources.retain(|source| source.field != field);
            self.sources.push(FieldSource::new(field, Origin::Declared, format!("--{option} {text}")));
        }
    }
}

/// Splits a text into `SIZE,WAYS,LINE` and the words behind it.
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
