//! The processors that can be declared: a table, one entry a member.

use super::feature::{Needs, BASELINE, FEATURES, LEVEL2, LEVEL3, LEVEL4};
use super::leaves::{Cache, CacheKind, Description, Leaves};
use super::valgrind;
use crate::error::{Error, ErrorKind};

/// A processor that can be declared.
#[derive(Debug)]
pub struct Processor {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    answers: Answers,
}

/// Where a processor's answers come from.
#[derive(Debug)]
enum Answers {
    Host,
    Described(Description),
    /// Answers that another program gave.
    Recorded(fn() -> Leaves),
}

const fn data(level: u32, bytes: u32, ways: u32) -> Cache {
    Cache { level, kind: CacheKind::Data, bytes, ways }
}

const fn instructions(level: u32, bytes: u32, ways: u32) -> Cache {
    Cache { level, kind: CacheKind::Instructions, bytes, ways }
}

const fn both(level: u32, bytes: u32, ways: u32) -> Cache {
    Cache { level, kind: CacheKind::Both, bytes, ways }
}

const KB: u32 = 1 << 10;
const MB: u32 = 1 << 20;
const SMALL: &[Cache] =
    &[data(1, 32 * KB, 8), instructions(1, 32 * KB, 8), both(2, 256 * KB, 8), both(3, 8 * MB, 16)];
const LARGE: &[Cache] =
    &[data(1, 32 * KB, 8), instructions(1, 32 * KB, 8), both(2, MB, 16), both(3, 16 * MB, 16)];
/// Beyond its level: what Intel's Haswell has and C libraries ask for.
const HASWELL: &[&str] = &["pclmulqdq", "aes", "rdrand", "erms", "fsgsbase", "xsaveopt", "rdtscp"];
/// Beyond Haswell: what Intel's Skylake servers have.
const SKYLAKE: &[&str] = &["rdseed", "adx", "clflushopt", "clwb", "3dnowprefetch", "xsavec", "xgetbv1"];

/// All processors.
pub static PROCESSORS: &[Processor] = &[
    Processor {
        name: "x86-64-v2",
        about: "level 2 of the x86-64 psABI and nothing beyond: SSE4.2",
        answers: Answers::Described(Description {
            signature: 0x0002_06c2,
            brand: "x86-64-v2",
            features: &[BASELINE, LEVEL2],
            caches: SMALL,
        }),
    },
    Processor {
        name: "x86-64-v3",
        about: "level 3: AVX2, BMI, FMA",
        answers: Answers::Described(Description {
            signature: 0x0003_06c3,
            brand: "x86-64-v3",
            features: &[BASELINE, LEVEL2, LEVEL3],
            caches: SMALL,
        }),
    },
    Processor {
        name: "x86-64-v4",
        about: "level 4: AVX-512 F, BW, CD, DQ and VL",
        answers: Answers::Described(Description {
            signature: 0x0005_0654,
            brand: "x86-64-v4",
            features: &[BASELINE, LEVEL2, LEVEL3, LEVEL4, &["xsavec"]],
            caches: LARGE,
        }),
    },
    Processor {
        name: "haswell",
        about: "Intel's Haswell: level 3 with AES, RDRAND and ERMS",
        answers: Answers::Described(Description {
            signature: 0x0003_06c3,
            brand: "Intel(R) Core(TM) Processor (Haswell)",
            features: &[BASELINE, LEVEL2, LEVEL3, HASWELL],
            caches: SMALL,
        }),
    },
    Processor {
        name: "skylake-server",
        about: "Intel's Skylake servers: level 4 with AES, RDRAND, ERMS and XSAVEC",
        answers: Answers::Described(Description {
            signature: 0x0005_0654,
            brand: "Intel(R) Xeon(R) Processor (Skylake)",
            features: &[BASELINE, LEVEL2, LEVEL3, LEVEL4, HASWELL, SKYLAKE],
            caches: LARGE,
        }),
    },
    Processor {
        name: "valgrind",
        about: "the one that Valgrind shows on machines with AVX2, with Valgrind's environment",
        answers: Answers::Recorded(valgrind::leaves),
    },
    Processor { name: "host", about: "the machine's own, as a single processor", answers: Answers::Host },
];

impl Processor {
    /// The processor of this name.
    ///
    /// # Errors
    /// If there is no such processor, or if this machine cannot execute its instructions.
    pub fn named(name: &str) -> Result<&'static Processor, Error> {
        let Some(processor) = PROCESSORS.iter().find(|processor| processor.name == name) else {
            let names: Vec<_> = PROCESSORS.iter().map(|processor| processor.name).collect();
            let why = format!("there is no processor '{name}': choose one of {}", names.join(", "));
            return Err(Error::new(ErrorKind::Unsupported, why));
        };
        let lacking = processor.lacking(&Leaves::Host);
        if lacking.is_empty() {
            return Ok(processor);
        }
        let why = format!(
            "this machine cannot show a program the processor {name}: it lacks {}, choose one that asks for less",
            lacking.join(", ")
        );
        Err(Error::new(ErrorKind::Unsupported, why))
    }

    /// The machine's own processor.
    pub(super) fn host() -> &'static Processor {
        PROCESSORS
            .iter()
            .find(|processor| matches!(processor.answers, Answers::Host))
            .expect("the table has the host")
    }

    /// Whether the processor is Valgrind's, which comes with an environment.
    pub(crate) fn is_valgrinds(&self) -> bool {
        matches!(self.answers, Answers::Recorded(_))
    }

    /// Its answers.
    pub(crate) fn leaves(&self) -> Leaves {
        match &self.answers {
            Answers::Host => Leaves::Host,
            Answers::Described(description) => description.leaves(),
            Answers::Recorded(leaves) => leaves(),
        }
    }

    /// The features whose instructions a machine lacks.
    fn lacking(&self, machine: &Leaves) -> Vec<&'static str> {
        let own = self.leaves();
        let needed = FEATURES.iter().filter(|feature| feature.needs == Needs::Instructions);
        needed
            .filter(|feature| own.declare(feature) && !machine.declare(feature))
            .map(|feature| feature.name)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_others() {
        let error = Processor::named("pentium").unwrap_err().to_string();
        assert!(error.contains("'pentium'") && error.contains("x86-64-v3, x86-64-v4"), "{error}");
    }

    #[test]
    fn a_machine_lacks_what_it_does_not_declare() {
        let leaves = |name: &str| {
            PROCESSORS.iter().find(|processor| processor.name == name).map(Processor::leaves).unwrap()
        };
        assert_eq!(Processor::host().lacking(&Leaves::Host), Vec::<&str>::new());
        let level4 = PROCESSORS.iter().find(|processor| processor.name == "x86-64-v4").unwrap();
        let lacking = level4.lacking(&leaves("haswell"));
        assert_eq!(lacking, ["avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "xsavec"]);
    }

    #[test]
    fn names_stand_once() {
        let mut names: Vec<_> = PROCESSORS.iter().map(|processor| processor.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
