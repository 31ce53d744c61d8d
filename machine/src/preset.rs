//! Presets: machines that ship with the crate.
//!
//! Each preset is a commented TOML file under `machine/machines`, compiled into the crate, so that
//! presets are also examples of the format. A new preset needs a file and an entry of [`PRESETS`].

use crate::{read, Machine};
use std::path::Path;

/// A machine that ships with the crate.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name, for option `--machine`.
    pub name: &'static str,
    /// The `description` of the file.
    pub description: &'static str,
    /// The file's text.
    pub toml: &'static str,
}

impl Preset {
    /// Reads the machine from the file's text.
    ///
    /// # Panics
    /// Never: a test reads every preset.
    pub fn machine(&self) -> Machine {
        let path = format!("machine/machines/{}.toml", self.name);
        read::machine(self.toml, Path::new(&path)).expect("a test reads every preset")
    }
}

macro_rules! preset {
    ($name:literal, $description:literal) => {
        Preset {
            name: $name,
            description: $description,
            toml: include_str!(concat!("../machines/", $name, ".toml")),
        }
    };
}

/// All presets: the papers' machines first, then Cachegrind's, then some of today.
pub const PRESETS: &[Preset] = &[
    preset!("ladner2002", "The simulated cache of Ladner, Fortna and Nguyen 2002: one level, direct-mapped"),
    preset!("celeron", "533 MHz Intel Celeron of Ladner, Fortna and Nguyen 2002, Table 4.1"),
    preset!("pentium2", "350 MHz Intel Pentium II of Ladner, Fortna and Nguyen 2002, Table 4.1"),
    preset!("xeon-dp", "2.8 GHz Intel Xeon DP of Athanasaki et al. 2006, Table 1, with its penalties"),
    preset!(
        "cachegrind",
        "The caches that Cachegrind is usually given: 32K/32K/8M, lines of 64 bytes, no TLB"
    ),
    preset!("skylake-sp", "Intel Skylake server core with the 1.375 MiB slices of a 28-core last level"),
    preset!("skylake-sp-victim", "Intel Skylake server core whose 38.5 MiB last level holds the victims of the second"),
    preset!("ice-lake-policies", "Intel Core i5-1035G1 (Ice Lake) with the replacement policies that uops.info measured"),
    preset!("ice-lake-sp", "Intel Ice Lake server core with the 1.5 MiB slices of a 40-core last level"),
    preset!(
        "sapphire-rapids",
        "Intel Sapphire Rapids core with the 1.875 MiB slices of a 56-core last level"
    ),
    preset!("emerald-rapids", "Intel Emerald Rapids core with the 5 MiB slices of a 64-core last level"),
    preset!("granite-rapids", "Intel Granite Rapids core with the 480 MiB last level of a socket"),
    preset!("zen4", "AMD Zen 4 core with the 32 MiB last level of its complex"),
    preset!(
        "zen4-victim",
        "AMD Zen 4 core whose second level includes the first, and whose 32 MiB last level holds its victims"
    ),
    preset!("zen5", "AMD Zen 5 core with the 32 MiB last level of its complex"),
    preset!(
        "sandy-bridge",
        "Intel Sandy Bridge core with an inclusive 8 MiB last level, stride and next-line prefetchers"
    ),
    preset!(
        "sandy-bridge-policies",
        "Intel Sandy Bridge core with measured replacement policies, a last level in four slices, and a streamer"
    ),
    preset!("cortex-a53", "Arm Cortex-A53 with 32K/32K first levels that replace at random, and 512K"),
    preset!("graviton4", "Arm Neoverse V2 core of an AWS Graviton 4, with the 36 MiB last level of a socket"),
    preset!(
        "m1",
        "Apple M1 performance core, as far as it is public: lines of 128 bytes from the second level on"
    ),
    preset!(
        "m2",
        "Apple M2 performance core, as far as it is public: a second level of 16 MiB for four cores"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, StoreMiss};

    /// What every preset must fulfil, listed or not.
    fn agrees(preset: &Preset) {
        let machine = Machine::from_toml(preset.toml, Path::new(preset.name)).unwrap();
        assert_eq!((machine.name.as_str(), machine.description.as_str()), (preset.name, preset.description));
        assert_eq!(preset.machine(), machine);
        let again = Machine::from_toml(&machine.to_toml(), Path::new("again")).unwrap();
        assert_eq!(again, machine);
        assert!(machine.data_cache(1).is_some(), "{} has no first level", preset.name);
    }

    #[test]
    fn every_file_agrees_with_its_line_and_reads_back() {
        PRESETS.iter().for_each(agrees);
    }

    /// A machine that no list has.
    const DUMMY: Preset = Preset {
        name: "dummy",
        description: "One level",
        toml: "name = \"dummy\"\ndescription = \"One level\"\n\
               [[cache]]\nlevel = 1\nkind = \"data\"\nsize_bytes = \"4K\"\nways = 2\nline_bytes = 64\n",
    };

    #[test]
    fn a_preset_that_is_not_listed_agrees_and_a_wrong_one_is_found() {
        agrees(&DUMMY);
        let wrong = Preset { description: "Two levels", ..DUMMY };
        assert!(std::panic::catch_unwind(|| agrees(&wrong)).is_err());
    }

    #[test]
    fn every_file_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string())
            .collect();
        let mut names: Vec<String> = PRESETS.iter().map(|preset| preset.name.to_string()).collect();
        files.sort_unstable();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn the_papers_machines() {
        let ladner = Machine::preset("ladner2002").unwrap();
        let cache = ladner.data_cache(1).unwrap();
        assert_eq!((cache.size_bytes, cache.ways, cache.line_bytes, cache.sets()), (8192, 1, 32, 256));
        assert_eq!(cache.store_miss, StoreMiss::Bypass);
        assert_eq!((ladner.caches.len(), ladner.tlbs.len()), (1, 0));

        for (name, size_bytes) in [("celeron", 128 << 10), ("pentium2", 512 << 10)] {
            let machine = Machine::preset(name).unwrap();
            assert!(machine.caches.iter().all(|cache| cache.ways == 4 && cache.line_bytes == 32), "{name}");
            assert_eq!(machine.last_level().unwrap().size_bytes, size_bytes);
        }

        let xeon = Machine::preset("xeon-dp").unwrap();
        let penalties = [1, 2].map(|level| xeon.data_cache(level).unwrap().penalty_cycles);
        assert_eq!(penalties, [Some(4), Some(18)]);
        assert_eq!(
            (xeon.data_tlb(1).unwrap().entries, xeon.data_tlb(1).unwrap().penalty_cycles),
            (64, Some(30))
        );
        assert_eq!(xeon.cycle.unwrap().branch_miss_cycles, Some(20));
        assert_eq!(xeon.source_of("cache.L2.ways").unwrap().origin, Origin::Declared);
    }

    #[test]
    fn last_levels_need_not_be_powers_of_two() {
        let odd = PRESETS.iter().map(Preset::machine);
        let odd: Vec<u64> =
            odd.filter_map(|m| Some(m.last_level()?.sets())).filter(|n| !n.is_power_of_two()).collect();
        assert!(odd.len() >= 3, "{odd:?}");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Machine::preset("vax").unwrap_err().to_string();
        assert!(error
            .starts_with("no machine \"vax\": expected host, a TOML file, or one of ladner2002, celeron"));
    }
}
