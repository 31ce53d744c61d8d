//! Events of a program's own, by the stacks that led there, as a heap without blocks: of a place,
//! `total` has the units and the number of events.
//!
//! **Leaves out** where stacks come from, which only the caller knows.

use crate::sites::Sites;
use crate::{Call, Follows, HeapProfile};
use instrument::Module;

/// The events so far.
#[derive(Clone)]
pub struct AdHocEvents {
    calls: Vec<Call>,
    modules: Vec<Module>,
    sites: Sites,
}

impl Default for AdHocEvents {
    fn default() -> AdHocEvents {
        AdHocEvents { calls: Vec::new(), modules: Vec::new(), sites: Sites::new() }
    }
}

impl AdHocEvents {
    /// An event of so many units happens below these calls, the innermost first. Cost: a pass over
    /// all calls that are known.
    pub fn happens(&mut self, units: u64, stack: &[(Module, u64)]) {
        let stack: Vec<u32> = stack.iter().map(|(module, address)| self.call(module, *address)).collect();
        let site = self.sites.number(&stack);
        self.sites.copied(site, units);
    }

    fn call(&mut self, module: &Module, address: u64) -> u32 {
        let AdHocEvents { calls, modules, .. } = self;
        let known = modules.iter().position(|known| known == module);
        let index = known.unwrap_or_else(|| {
            modules.push(module.clone());
            modules.len() - 1
        });
        let call = Call { module: index as u32, address };
        let known = calls.iter().position(|known| *known == call);
        known.unwrap_or_else(|| {
            calls.push(call);
            calls.len() - 1
        }) as u32
    }

    /// The events as the profile of a program that has run this many instructions.
    pub fn finish(self, instructions: u64) -> HeapProfile {
        let AdHocEvents { calls, modules, sites } = self;
        let (all, sites) = (sites.all.clone(), sites.finish());
        let (has_allocator, follows) = (true, Follows::Nothing);
        HeapProfile {
            all,
            sites,
            calls,
            modules,
            instructions,
            has_allocator,
            follows,
            ..HeapProfile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_add_up_by_their_stacks() {
        let module = |start| Module { start, ..Module::default() };
        let mut events = AdHocEvents::default();
        events.happens(3, &[(module(1), 10), (module(2), 20)]);
        events.happens(4, &[(module(1), 10), (module(2), 21)]);
        events.happens(5, &[(module(1), 10), (module(2), 20)]);
        let profile = events.finish(99);
        let sums: Vec<_> = profile.sites.iter().map(|site| (site.total.bytes, site.total.blocks)).collect();
        assert_eq!(sums, [(8, 2), (4, 1)]);
        assert_eq!(profile.sites[1].stack, [0, 2]);
        assert_eq!((profile.all.total.bytes, profile.all.total.blocks), (12, 3));
        assert_eq!((profile.modules.len(), profile.calls.len(), profile.instructions), (2, 3, 99));
    }
}
