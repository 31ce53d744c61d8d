//! Dependences between the instructions of a loop, or of a block that is none.
//!
//! **What it finds.** How long an iteration takes where every load hits the first level: bounded by
//! the dispatch and the units on one side, by the longest chain that one iteration hands to the
//! next on the other. And for each load where its address comes from: a constant step, other
//! values, an earlier load, or the load itself an iteration ago, as in `p = p->next`.
//!
//! **How.** The iterations are run abstractly: a register holds when its value is ready, which
//! loads fed it, and how it came from the registers at the start of the iteration. What is stored
//! at an address is found again by a load with equal registers, unchanged since, and displacement.
//!
//! **Leaves out** everything outside the sequence: values of registers, other paths through the
//! loop, what called functions do.

use crate::step::{Address, Change, Slot, Step, SLOTS};
use crate::timing::{Unit, LOAD_LATENCY};
use crate::words::WordMap;

/// Iterations that are run; the second half tells the time of one.
const ITERATIONS: usize = 8;

/// Loads of a sequence that are told apart; later ones have no part in chains.
const LOADS_MAX: usize = 128;

/// Loads of a sequence by their order.
type LoadSet = u128;

/// Where the address of a reference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It does not change from one iteration to the next.
    Constant,
    /// It advances by a constant; `None` where the constant stands in a register.
    Stride(Option<i64>),
    /// It is computed from values that need no load.
    Computed,
    /// It needs an earlier load, which does not need this one.
    Loaded,
    /// It needs this very load of the iteration before, or another load that is so chained.
    Chained,
}

/// What a sequence comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    /// Cycles of an iteration that dispatch and units need.
    pub(crate) throughput: f64,
    /// Cycles of an iteration along the longest chain.
    pub(crate) chain: f64,
    /// Those of the longest chain if loads took no time.
    pub(crate) chain_without_loads: f64,
    /// By step: the origin of its address; `None` where it makes no reference.
    pub(crate) origins: Vec<Option<Origin>>,
    /// By step that is a conditional branch: the steps whose loads decide it.
    pub(crate) decided_by: Vec<(usize, Vec<usize>)>,
}

/// Analyses an iteration of a loop.
pub(crate) fn of_loop(steps: &[Step], width: f64) -> Flow {
    let chain = chain(steps, LOAD_LATENCY);
    let chain_without_loads = chain_of(steps, 0.0, chain);
    let (origins, decided_by) = origins(steps, ITERATIONS);
    // The branch that closes the loop is taken, and only one of a cycle is.
    let throughput = throughput(steps, width).max(1.0);
    Flow { throughput, chain, chain_without_loads, origins, decided_by }
}

/// Analyses a sequence that does not repeat: nothing is handed on, and no address has a stride.
pub(crate) fn of_sequence(steps: &[Step], width: f64) -> Flow {
    let (mut origins, decided_by) = origins(steps, 1);
    for origin in origins.iter_mut().flatten() {
        if matches!(origin, Origin::Stride(_) | Origin::Constant | Origin::Chained) {
            *origin = Origin::Computed;
        }
    }
    Flow { throughput: throughput(steps, width), chain: 0.0, chain_without_loads: 0.0, origins, decided_by }
}

/// The second of two chains, which is never longer than the first.
fn chain_of(steps: &[Step], load_latency: f64, most: f64) -> f64 {
    chain(steps, load_latency).min(most)
}

/// Cycles that dispatch and units need for the steps.
pub(crate) fn throughput(steps: &[Step], width: f64) -> f64 {
    let (mut slots, mut loads, mut stores, mut branches) = (0.0, 0.0, 0.0, 0.0);
    let (mut multiplier, mut vector, mut float, mut shuffle, mut divider) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for step in steps {
        slots += f64::from(step.timing.slots);
        loads += f64::from(step.loads);
        stores += f64::from(step.stores);
        match step.timing.unit {
            Unit::General => {}
            Unit::Multiplier => multiplier += 1.0,
            Unit::Vector => vector += 1.0,
            Unit::Float => float += 1.0,
            Unit::Shuffle => shuffle += 1.0,
            Unit::Divider(cycles) => divider += f64::from(cycles),
            Unit::Branch => branches += 1.0,
        }
    }
    // Units that vectors share: three in all, of which two compute with floats and two shuffle.
    let vectors = (vector + float + shuffle) / 3.0;
    [
        slots / width,
        loads / 2.0,
        stores / 2.0,
        branches / 2.0,
        multiplier,
        vectors,
        float / 2.0,
        shuffle / 2.0,
        divider,
    ]
    .into_iter()
    .fold(0.0, f64::max)
}

/// The registers of an address, each with the number of its writes: equal keys are equal addresses.
type Key = (Address, u32, u32);

fn key(address: &Address, writes: &[u32; SLOTS]) -> Key {
    let of = |slot: Option<Slot>| slot.map_or(0, |slot| writes[usize::from(slot)]);
    (*address, of(address.base), of(address.index))
}

/// Cycles by which a forwarded value is later than one from the cache: processors rename stores
/// only where the address is a register and a displacement.
fn forwarding(address: &Address) -> f64 {
    match address.index {
        None => 0.0,
        Some(_) => 5.0,
    }
}

/// Cycles that each iteration waits for the one before it, if loads take `load_latency`.
fn chain(steps: &[Step], load_latency: f64) -> f64 {
    let mut ready = [0.0f64; SLOTS];
    let mut writes = [0u32; SLOTS];
    let mut stored: WordMap<Key, f64> = WordMap::default();
    let mut half = 0.0;
    for iteration in 0..ITERATIONS {
        for step in steps {
            let of = |slots: &mut dyn Iterator<Item = Slot>| {
                slots.map(|slot| ready[usize::from(slot)]).fold(0.0, f64::max)
            };
            let mut start = of(&mut step.reads.iter().copied());
            let known = step.address.as_ref().map(|address| key(address, &writes));
            if let (Some(address), true) = (&step.address, step.loads > 0) {
                let at = of(&mut address.base.into_iter().chain(address.index));
                // A value that was stored at the same address is forwarded.
                let forwarded = known.and_then(|known| stored.get(&known)).copied();
                let forwarded = forwarded.map_or(0.0, |ready| ready + forwarding(address));
                start = start.max(at.max(forwarded) + load_latency);
            }
            let done = start + f64::from(step.timing.latency);
            if let (Some(known), true) = (known, step.stores > 0) {
                stored.insert(known, done);
            }
            for &slot in step.writes.iter() {
                ready[usize::from(slot)] = done;
                writes[usize::from(slot)] += 1;
            }
        }
        if iteration + 1 == ITERATIONS / 2 {
            half = latest(&ready, &stored);
        }
    }
    (latest(&ready, &stored) - half) / (ITERATIONS - ITERATIONS / 2) as f64
}

/// When the last value is ready, in registers or in memory.
fn latest(ready: &[f64; SLOTS], stored: &WordMap<Key, f64>) -> f64 {
    ready.iter().chain(stored.values()).copied().fold(0.0, f64::max)
}

/// A register's value, from the registers at the start of the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// A register plus a constant.
    Plus(Slot, i64),
    /// A register with something added that does not change, or a multiple of it.
    Linear(Slot),
    Other,
}

/// How the registers of a sequence change.
struct Changes {
    written: [bool; SLOTS],
    /// By register: how an iteration changes it.
    steps: [Value; SLOTS],
}

impl Changes {
    fn of(steps: &[Step]) -> Changes {
        let mut written = [false; SLOTS];
        steps.iter().flat_map(|step| step.writes.iter()).for_each(|&slot| written[usize::from(slot)] = true);
        let mut changes = Changes { written, steps: identity() };
        let mut values = identity();
        steps.iter().for_each(|step| changes.apply(step, &mut values));
        changes.steps = values;
        changes
    }

    /// The values behind a step.
    fn apply(&self, step: &Step, values: &mut [Value; SLOTS]) {
        let value = match step.change {
            _ if step.loads > 0 => None,
            Change::Opaque => None,
            Change::Offset { to, from, constant } => {
                let value = match values[usize::from(from)] {
                    Value::Plus(root, offset) => Value::Plus(root, offset.wrapping_add(constant)),
                    other => other,
                };
                Some((to, value))
            }
            Change::Moved { to, from, by } => {
                let by_constant = self.is_constant(values[usize::from(by)]);
                let from_constant = self.is_constant(values[usize::from(from)]);
                Some((
                    to,
                    match (linear(values[usize::from(from)]), by_constant, from_constant) {
                        (Some(root), true, _) => Value::Linear(root),
                        (_, false, true) => {
                            linear(values[usize::from(by)]).map_or(Value::Other, Value::Linear)
                        }
                        _ => Value::Other,
                    },
                ))
            }
            Change::Multiple { to, from } => {
                Some((to, linear(values[usize::from(from)]).map_or(Value::Other, Value::Linear)))
            }
        };
        for &slot in step.writes.iter() {
            values[usize::from(slot)] = Value::Other;
        }
        if let Some((to, value)) = value {
            values[usize::from(to)] = value;
        }
    }

    fn is_constant(&self, value: Value) -> bool {
        matches!(linear(value), Some(root) if !self.written[usize::from(root)])
    }

    /// How far a register's value moves with each iteration; `None` if that is not constant.
    fn stride(&self, value: Value) -> Option<Option<i64>> {
        let root = linear(value)?;
        if !self.written[usize::from(root)] {
            return Some(Some(0));
        }
        match (self.steps[usize::from(root)], value) {
            (Value::Plus(from, by), Value::Plus(..)) if from == root => Some(Some(by)),
            (Value::Plus(from, _) | Value::Linear(from), _) if from == root => Some(None),
            _ => None,
        }
    }

    /// The stride of an address; `None` if it has none.
    fn of_address(&self, address: &Address, values: &[Value; SLOTS]) -> Option<Option<i64>> {
        let of =
            |slot: Option<Slot>| slot.map_or(Some(Some(0)), |slot| self.stride(values[usize::from(slot)]));
        let (base, index) = (of(address.base)?, of(address.index)?);
        let sum = |base: i64, index: i64| base.wrapping_add(index.wrapping_mul(i64::from(address.scale)));
        Some(base.zip(index).map(|(base, index)| sum(base, index)))
    }
}

fn identity() -> [Value; SLOTS] {
    std::array::from_fn(|slot| Value::Plus(slot as Slot, 0))
}

fn linear(value: Value) -> Option<Slot> {
    match value {
        Value::Plus(root, _) | Value::Linear(root) => Some(root),
        Value::Other => None,
    }
}

type Origins = (Vec<Option<Origin>>, Vec<(usize, Vec<usize>)>);

/// Origins of addresses, and the loads that decide branches, after so many iterations.
fn origins(steps: &[Step], iterations: usize) -> Origins {
    let changes = Changes::of(steps);
    let numbers = load_numbers(steps);
    let mut fed = [0 as LoadSet; SLOTS];
    let mut writes = [0u32; SLOTS];
    let mut stored: WordMap<Key, LoadSet> = WordMap::default();
    // By step: the loads behind its address, and those behind what it reads, in the last iteration.
    let mut behind = vec![0 as LoadSet; steps.len()];
    let mut decided = vec![0 as LoadSet; steps.len()];
    let mut strides = vec![None; steps.len()];
    for _ in 0..iterations {
        let mut values = identity();
        for (place, step) in steps.iter().enumerate() {
            let of = |slots: &mut dyn Iterator<Item = Slot>| {
                slots.map(|slot| fed[usize::from(slot)]).fold(0, |all, one| all | one)
            };
            let mut feeds = of(&mut step.reads.iter().copied());
            decided[place] = feeds;
            let known = step.address.as_ref().map(|address| key(address, &writes));
            if let Some(address) = &step.address {
                behind[place] = of(&mut address.base.into_iter().chain(address.index));
                strides[place] = changes.of_address(address, &values);
                if step.loads > 0 {
                    let own = numbers[place].map_or(0, |number| 1 << number);
                    let forwarded = known.and_then(|known| stored.get(&known)).copied();
                    feeds |= forwarded.unwrap_or(behind[place] | own);
                }
            }
            if let (Some(known), true) = (known, step.stores > 0) {
                stored.insert(known, feeds);
            }
            changes.apply(step, &mut values);
            for &slot in step.writes.iter() {
                fed[usize::from(slot)] = feeds;
                writes[usize::from(slot)] += 1;
            }
        }
    }
    let origins = named(steps, &numbers, &behind, &strides);
    let branches = steps.iter().enumerate().filter(|(_, step)| step.conditional);
    let decided_by = branches.map(|(place, _)| {
        let decides = |(_, number): &(usize, &Option<u32>)| {
            number.is_some_and(|number| decided[place] >> number & 1 == 1)
        };
        (place, numbers.iter().enumerate().filter(decides).map(|(load, _)| load).collect())
    });
    (origins, decided_by.collect())
}

/// The numbers of the steps that load.
fn load_numbers(steps: &[Step]) -> Vec<Option<u32>> {
    let mut next = 0;
    let number = |step: &Step| {
        let number = (step.loads > 0 && next < LOADS_MAX as u32).then_some(next);
        next += u32::from(number.is_some());
        number
    };
    steps.iter().map(number).collect()
}

fn named(
    steps: &[Step],
    numbers: &[Option<u32>],
    behind: &[LoadSet],
    strides: &[Option<Option<i64>>],
) -> Vec<Option<Origin>> {
    let is_chained = |place: usize| numbers[place].is_some_and(|number| behind[place] >> number & 1 == 1);
    let chained: Vec<usize> = (0..steps.len()).filter(|&place| is_chained(place)).collect();
    let one = |(place, step): (usize, &Step)| {
        let address = step.address.as_ref()?;
        Some(match strides[place] {
            Some(Some(0)) => Origin::Constant,
            Some(stride) => Origin::Stride(stride),
            // Another field of the object that a chained load reads belongs to the chain, because
            // the first of them misses.
            None if chained
                .iter()
                .any(|&chain| chain == place || same_object(address, steps[chain].address.as_ref())) =>
            {
                Origin::Chained
            }
            None if behind[place] != 0 => Origin::Loaded,
            None => Origin::Computed,
        })
    };
    steps.iter().enumerate().map(one).collect()
}

/// Whether addresses have the same registers, and displacements less than a line apart.
fn same_object(address: &Address, other: Option<&Address>) -> bool {
    other.is_some_and(|other| {
        (address.base, address.index, address.scale) == (other.base, other.index, other.scale)
            && address.displacement.abs_diff(other.displacement) < 64
    })
}
