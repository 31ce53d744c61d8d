//! The modules of a run: each has one number in all images that have it at one place.

use instrument::Module;
use symbol::ByNumber;

/// All modules that were met.
#[derive(Default)]
pub(crate) struct Modules {
    pub(crate) all: Vec<Module>,
    /// Numbers by the first address.
    numbers: ByNumber<u64, Vec<u32>>,
}

impl Modules {
    /// The number of no module.
    pub(crate) const NONE: u32 = u32::MAX;

    /// The number of a module.
    pub(crate) fn number(&mut self, module: &Module) -> u32 {
        let there = self.numbers.entry(module.start).or_default();
        if let Some(&known) = there.iter().find(|&&number| self.all[number as usize] == *module) {
            return known;
        }
        let number = self.all.len() as u32;
        there.push(number);
        self.all.push(module.clone());
        number
    }

    /// The module at an address, and its number, among those that an image has met; of modules that
    /// lay there after each other the last one.
    pub(crate) fn at(&self, of_image: &[u32], address: u64) -> Option<(u32, &Module)> {
        let module = |&number: &u32| (number, &self.all[number as usize]);
        of_image.iter().rev().map(module).find(|(_, module)| (module.start..module.end).contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_one_number_and_the_last_one_at_an_address_counts() {
        let module =
            |path: &str, start| Module { path: path.into(), start, end: start + 10, ..Module::default() };
        let mut modules = Modules::default();
        let [first, second, third] =
            [("a", 100), ("b", 105), ("c", 100)].map(|(path, start)| modules.number(&module(path, start)));
        assert_eq!([first, second, third, modules.number(&module("b", 105))], [0, 1, 2, 1]);
        let at = |of_image: &[u32], address| modules.at(of_image, address).map(|found| found.0);
        assert_eq!(at(&[first, second], 104), Some(first));
        assert_eq!(at(&[first, second], 105), Some(second));
        assert_eq!(at(&[third], 105), Some(third), "another image");
        assert_eq!((at(&[third], 110), at(&[], 104)), (None, None));
    }
}
