//! Retires translations of code that is about to change.

use super::Translator;
use crate::target::trust::Modules;
use std::collections::HashSet;

impl Translator {
    /// Retires the translations of `[start, end)`, which is about to change. If other fragments may
    /// rely on registers that are dead in one of them, all fragments of its file are retired.
    pub(crate) fn retire_code(&mut self, start: u64, end: u64, modules: &impl Modules) {
        // A fragment that begins in the page before the range may reach into it.
        let within = |&fragment_index: &usize| {
            let pc = self.cache.fragments[fragment_index].pc;
            pc + 4096 > start && pc < end
        };
        let file = |&fragment_index: &usize| {
            let block = &self.blocks[self.cache.fragments[fragment_index].first_block as usize];
            modules.module(block.module).map(|module| &module.path)
        };
        let (mut changed, others): (Vec<usize>, Vec<usize>) =
            self.cache.map.values().map(|&fragment_index| fragment_index as usize).partition(within);
        // Other fragments of the file may have left registers unrestored, or flags changed, because
        // a fragment that changes did not need them.
        let relied_on: HashSet<_> = changed
            .iter()
            .filter(|&&fragment_index| {
                let fragment = &self.cache.fragments[fragment_index];
                fragment.dead != 0 || fragment.flags_dead
            })
            .map(file)
            .collect();
        if !relied_on.is_empty() {
            changed.extend(others.iter().filter(|fragment_index| relied_on.contains(&file(fragment_index))));
        }
        for fragment_index in changed {
            self.cache.retire(fragment_index);
        }
    }
}
