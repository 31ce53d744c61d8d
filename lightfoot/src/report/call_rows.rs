//! Rows of calls: how often a function calls another one, and what the calls cost.
//!
//! A row has the cost of the called function with all that it calls, so rows overlap and add up to
//! more than the totals. The cost of a recursion belongs to the outermost call; inner calls have a
//! number and no cost, so that no row has more than the whole. Calls of one pair of functions from
//! several places are one row: places move whenever a line is added.

use super::row::{plain, Row};
use crate::run::calls::Calls;
use crate::run::tally::Counts;
use symbol::{demangle, ByNumber, Symbolizer};

/// A row for each pair of functions of which the first one calls the second one.
pub fn rows(calls: &Calls, symbols: &Symbolizer) -> Vec<Row> {
    let function = |node: u32| calls.contexts[node as usize].function;
    let inclusive = calls.inclusive();
    let mut pairs: Vec<(u32, u32, u64, Counts)> = Vec::new();
    let mut numbers: ByNumber<u64, u32> = ByNumber::default();
    let mut add = |caller: u32, callee: u32, times: u64, counts: Option<&Counts>| {
        let number =
            *numbers.entry(u64::from(caller) << 32 | u64::from(callee)).or_insert(pairs.len() as u32);
        if number as usize == pairs.len() {
            pairs.push((caller, callee, 0, Counts::default()));
        }
        let pair = &mut pairs[number as usize];
        pair.2 += times;
        counts.into_iter().for_each(|counts| pair.3.add(counts));
    };
    // Functions at the root have no caller.
    let called = calls.contexts.iter().zip(&inclusive).skip(1).filter(|(context, _)| context.parent > 0);
    called.for_each(|(context, counts)| {
        add(function(context.parent), context.function, context.calls, Some(counts));
    });
    for (back, times) in calls.backs.iter().filter(|(back, _)| back.from > 0) {
        add(function(back.from), function(back.to), *times, None);
    }
    let known = |function: u32| &symbols.functions()[function as usize];
    let name = |function: u32| demangle(&known(function).name);
    let row = |(caller, callee, times, counts): (u32, u32, u64, Counts)| Row {
        name: format!("{} → {}", name(caller), name(callee)),
        library: Some(plain(&symbols.libraries()[known(callee).library].path)),
        calls: Some(times),
        counts,
        ..Row::default()
    };
    pairs.into_iter().map(row).collect()
}
