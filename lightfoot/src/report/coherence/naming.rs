//! Names for sites and addresses of a program that has ended.

use super::{Frame, Lying, PairRow, Place};
use ::objects::FieldNames;
use coherence::{HeapBlock, Pair};
use instrument::{Module, Profile};
use present::order::SortRows;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use symbol::{demangle, Kind, Listing, Symbolizer};

/// Without address randomisation nothing but the main thread's stack lies from here on.
const STACK: Range<u64> = 0x7fff_f800_0000..0x8000_0000_0000;

/// A variable of a module.
struct Variable {
    address: u64,
    size_bytes: u64,
    name: String,
    /// Its address in its file.
    link_address: u64,
    /// The number of the module.
    module: usize,
}

/// Finds names.
pub(super) struct Namer<'a> {
    profile: &'a Profile,
    symbols: Symbolizer,
    places: HashMap<u32, Place>,
    /// Variables by address; read when the first one is asked for.
    variables: Option<Vec<Variable>>,
    fields: FieldNames,
}

impl<'a> Namer<'a> {
    pub(super) fn new(profile: &'a Profile) -> Namer<'a> {
        let mut symbols = Symbolizer::new();
        symbols.name_generated(&profile.modules);
        Namer { profile, symbols, places: HashMap::new(), variables: None, fields: FieldNames::default() }
    }

    /// A pair with the names of its places.
    pub(super) fn pair(&mut self, pair: &Pair) -> PairRow {
        PairRow {
            missed: self.place(pair.missed),
            took: self.place(pair.took),
            true_sharing: pair.true_sharing,
            false_sharing: pair.false_sharing,
        }
    }

    /// The place of a site.
    fn place(&mut self, site: u32) -> Place {
        if let Some(known) = self.places.get(&site) {
            return known.clone();
        }
        let place = self.look_up(site).unwrap_or_default();
        self.places.insert(site, place.clone());
        place
    }

    fn look_up(&mut self, site: u32) -> Option<Place> {
        let (module, ip) = self.code(site)?;
        let function = self.symbols.function_at(module, ip).function;
        let function = demangle(&self.symbols.functions()[function].name);
        let library = module.path.to_string_lossy().into_owned();
        let bare = Frame { function, library, file: None, line: None };
        let Some(innermost) = self.symbols.frame(module, ip) else {
            return Some(Place { frames: vec![bare] });
        };
        let sources = self.symbols.sources();
        let frame = |source: symbol::SourceFrame| Frame {
            function: source
                .inlined
                .map_or_else(|| bare.function.clone(), |name| demangle(&sources.names()[name as usize])),
            file: sources.files().get(source.file as usize).cloned(),
            line: Some(source.line).filter(|&line| line > 0),
            ..bare.clone()
        };
        Some(Place { frames: sources.chain(innermost).map(frame).collect() })
    }

    /// What lies at some addresses, given the blocks of the heap there.
    pub(super) fn objects(&mut self, range: Range<u64>, blocks: &[HeapBlock]) -> Vec<Lying> {
        if !blocks.is_empty() {
            let mut named: Vec<Lying> = blocks.iter().map(|block| self.block(block, &range)).collect();
            named.sort_rows_by_key(|lying| (lying.name.clone(), lying.address));
            named.dedup_by_key(|lying| lying.address);
            return named;
        }
        let variables = self.variables(&range);
        match (variables.is_empty(), STACK.contains(&range.start)) {
            (false, _) => variables,
            (true, true) => vec![Lying { name: "stack of the main thread".into(), ..Lying::default() }],
            (true, false) => vec![Lying { name: "memory".into(), ..Lying::default() }],
        }
    }

    fn block(&mut self, block: &HeapBlock, range: &Range<u64>) -> Lying {
        let place = block.call.map(|call| self.place(call).named());
        let place = place.filter(|name| !name.is_empty()).unwrap_or_else(|| "?".into());
        let HeapBlock { address, size_bytes, .. } = *block;
        let name = format!("heap block from {place}");
        let memory = address..address.saturating_add(size_bytes);
        let call = block.call.and_then(|call| self.code(call));
        let fields = call.map(|(module, ip)| self.fields.of_block(module, ip, &memory, range));
        Lying {
            name,
            address: Some(address),
            size_bytes: Some(size_bytes),
            fields: fields.unwrap_or_default(),
        }
    }

    /// The module and the address of a site's instruction.
    fn code(&self, site: u32) -> Option<(&'a Module, u64)> {
        let known = self.profile.sites.get(site as usize)?;
        let block = self.profile.blocks.get(known.block as usize)?;
        Some((self.profile.modules.get(block.module as usize)?, known.ip))
    }

    fn variables(&mut self, range: &Range<u64>) -> Vec<Lying> {
        let profile = self.profile;
        let all = self.variables.get_or_insert_with(|| variables(profile));
        let from = all.partition_point(|variable| variable.address + variable.size_bytes <= range.start);
        let within = all[from..].iter().take_while(|variable| variable.address < range.end);
        let mut lying = |variable: &Variable| {
            let Variable { address, size_bytes, link_address, module, .. } = *variable;
            let (path, memory) = (&profile.modules[module].path, address..address + size_bytes);
            let fields = self.fields.of_variable(path, link_address, &memory, range);
            let (address, size_bytes) = (Some(address), Some(size_bytes));
            Lying { name: demangle(&variable.name), address, size_bytes, fields }
        };
        within.map(&mut lying).collect()
    }
}

/// The variables of all modules, by address. Those that lie within others are left out.
fn variables(profile: &Profile) -> Vec<Variable> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let modules = profile.modules.iter().enumerate().filter(|(_, module)| module.process.is_none());
    for (number, module) in modules {
        if !seen.insert(&module.path) {
            continue;
        }
        let Some(listing) = Listing::of_symbols(&module.path) else { continue };
        let named = listing.names.iter().filter(|named| named.kind == Kind::Variable && named.size_bytes > 0);
        all.extend(named.filter_map(|named| {
            let address = listing.mapped(module, named.address)?;
            let (size_bytes, link_address, name) = (named.size_bytes, named.address, named.name.clone());
            Some(Variable { address, size_bytes, name, link_address, module: number })
        }));
    }
    all.sort_rows_by_key(|variable| (variable.address, std::cmp::Reverse(variable.size_bytes)));
    let mut end = 0;
    all.retain(|variable| {
        let outside = variable.address >= end;
        end = end.max(variable.address.saturating_add(variable.size_bytes));
        outside
    });
    all
}
