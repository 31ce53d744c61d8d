//! The kernels: every variant of every family, one table.
//!
//! A variant prepares its data and returns a pass, which the study times natively and measures
//! under the engine. A pass changes nothing that the next one reads, or restores it, so that all
//! passes do equal work. The kernels are plain Rust, written as a person would write them; nothing
//! in them was chosen after an estimate was seen.

mod branch;
mod chain;
mod dense;
mod gather;
mod hash;
mod layout;
mod linked;
mod lookup;
mod sorting;
mod stream;
mod text;

/// One pass over prepared data; returns a checksum, which keeps the compiler from dropping it.
pub type Pass = Box<dyn FnMut() -> u64>;

/// One variant.
pub struct Variant {
    /// What it is called; names are unique, and the part before the colon is the family.
    pub name: String,
    /// Operations of a pass, such as elements or look-ups; variants of a family have one unit.
    pub operations: usize,
    make: Box<dyn Fn() -> Pass>,
}

impl Variant {
    /// A variant of `family`.
    pub(super) fn new(
        family: &str,
        name: &str,
        operations: usize,
        make: impl Fn() -> Pass + 'static,
    ) -> Variant {
        Variant { name: format!("{family}:{name}"), operations, make: Box::new(make) }
    }

    /// The family's name.
    pub fn family(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(family, _)| family)
    }

    /// Prepares the data.
    pub fn prepare(&self) -> Pass {
        (self.make)()
    }
}

/// All variants, family by family. A family is one file and one entry.
pub fn variants() -> Vec<Variant> {
    let families: &[fn() -> Vec<Variant>] = &[
        dense::orders,
        dense::blockings,
        dense::transposes,
        linked::variants,
        hash::variants,
        layout::variants,
        lookup::variants,
        branch::variants,
        stream::variants,
        gather::variants,
        text::variants,
        sorting::variants,
        chain::variants,
    ];
    families.iter().flat_map(|family| family()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_sixty_variants_with_names_of_their_own() {
        let variants = variants();
        assert!(variants.len() >= 60, "{}", variants.len());
        let names: HashSet<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names.len(), variants.len());
        assert!(variants.iter().all(|variant| variant.operations > 0 && variant.name.contains(':')));
    }

    #[test]
    fn passes_of_a_variant_do_equal_work() {
        for variant in variants().iter().filter(|variant| variant.operations <= 1 << 16) {
            let mut pass = variant.prepare();
            let first = pass();
            assert_eq!(first, pass(), "{}", variant.name);
        }
    }
}
