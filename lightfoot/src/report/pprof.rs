//! Writes a profile for `pprof` and what reads its format: stacks are calling contexts, and each
//! column of the report is a type of sample.
//!
//! The file is a message of protocol buffers; readers take it with or without compression. A call
//! has the line that the function begins at, because contexts know no lines. **Leaves out** threads
//! and time. Source: `profile.proto` of google/pprof.

use super::detail::Detail;
use super::measurement::Report;
use super::protobuf::{Message, Strings};
use super::Metric;
use crate::run::tally::Counts;
use std::collections::{BTreeMap, HashMap};

/// Fields of the messages, by their names in `profile.proto`.
mod field {
    pub(super) const PROFILE_SAMPLE_TYPE: u32 = 1;
    pub(super) const PROFILE_SAMPLE: u32 = 2;
    pub(super) const PROFILE_MAPPING: u32 = 3;
    pub(super) const PROFILE_LOCATION: u32 = 4;
    pub(super) const PROFILE_FUNCTION: u32 = 5;
    pub(super) const PROFILE_STRING_TABLE: u32 = 6;
    pub(super) const PROFILE_COMMENT: u32 = 13;
    pub(super) const PROFILE_DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub(super) const VALUE_TYPE_TYPE: u32 = 1;
    pub(super) const VALUE_TYPE_UNIT: u32 = 2;
    pub(super) const SAMPLE_LOCATION_ID: u32 = 1;
    pub(super) const SAMPLE_VALUE: u32 = 2;
    pub(super) const MAPPING_ID: u32 = 1;
    pub(super) const MAPPING_FILENAME: u32 = 5;
    pub(super) const MAPPING_HAS_FUNCTIONS: u32 = 7;
    pub(super) const LOCATION_ID: u32 = 1;
    pub(super) const LOCATION_MAPPING_ID: u32 = 2;
    pub(super) const LOCATION_LINE: u32 = 4;
    pub(super) const LINE_FUNCTION_ID: u32 = 1;
    pub(super) const LINE_LINE: u32 = 2;
    pub(super) const FUNCTION_ID: u32 = 1;
    pub(super) const FUNCTION_NAME: u32 = 2;
    pub(super) const FUNCTION_SYSTEM_NAME: u32 = 3;
    pub(super) const FUNCTION_FILENAME: u32 = 4;
    pub(super) const FUNCTION_START_LINE: u32 = 5;
}

/// The profile.
pub fn show(report: &Report, detail: &Detail) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut profile = Message::default();
    let metrics: Vec<&Metric> = report.metrics().filter(|metric| exists(metric, detail)).collect();
    for metric in &metrics {
        let mut value_type = Message::default();
        value_type.number(field::VALUE_TYPE_TYPE, strings.number(metric.field));
        value_type.number(field::VALUE_TYPE_UNIT, strings.number("count"));
        profile.message(field::PROFILE_SAMPLE_TYPE, &value_type);
    }
    samples(detail, &metrics, &mut profile);
    places(detail, &mut strings, &mut profile);
    let default = report.sort.map_or(metrics.first().map_or("", |metric| metric.field), |sort| sort.field);
    let (default, comment) = (strings.number(default), strings.number(&report.command.join(" ")));
    profile.number(field::PROFILE_COMMENT, comment);
    profile.number(field::PROFILE_DEFAULT_SAMPLE_TYPE, default);
    for text in &strings.all {
        profile.bytes(field::PROFILE_STRING_TABLE, text.as_bytes());
    }
    profile.0
}

/// Whether contexts have a metric: estimated cycles, for one, belong to blocks.
pub(super) fn exists(metric: &Metric, detail: &Detail) -> bool {
    let samples = detail.calls.iter().flat_map(|calls| &calls.samples);
    samples.into_iter().any(|sample| (metric.value)(&sample.counts).is_some())
}

/// One sample for each context with costs. The innermost function stands first.
fn samples(detail: &Detail, metrics: &[&Metric], profile: &mut Message) {
    let Some(calls) = &detail.calls else { return };
    let mut by_context = BTreeMap::<u32, Counts>::new();
    for sample in calls.samples.iter().filter(|sample| sample.node > 0) {
        by_context.entry(sample.node).or_default().add(&sample.counts);
    }
    for (context, counts) in by_context {
        let values: Vec<u64> = metrics.iter().map(|metric| (metric.value)(&counts).unwrap_or(0)).collect();
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        let mut sample = Message::default();
        let locations = calls.functions_of(context).map(|function| u64::from(function) + 1);
        sample.packed(field::SAMPLE_LOCATION_ID, locations);
        sample.packed(field::SAMPLE_VALUE, values.into_iter());
        profile.message(field::PROFILE_SAMPLE, &sample);
    }
}

/// The libraries, and a location and a function for each function; identifiers begin at 1.
fn places(detail: &Detail, strings: &mut Strings, profile: &mut Message) {
    let mut libraries = HashMap::<&str, u64>::new();
    for function in &detail.functions {
        let next = libraries.len() as u64 + 1;
        if *libraries.entry(&function.library).or_insert(next) == next {
            let mut mapping = Message::default();
            mapping.number(field::MAPPING_ID, next);
            mapping.number(field::MAPPING_FILENAME, strings.number(&function.library));
            mapping.number(field::MAPPING_HAS_FUNCTIONS, 1);
            profile.message(field::PROFILE_MAPPING, &mapping);
        }
    }
    for (function, id) in detail.functions.iter().zip(1..) {
        let mut line = Message::default();
        line.number(field::LINE_FUNCTION_ID, id);
        line.number(field::LINE_LINE, function.first_line.into());
        let mut location = Message::default();
        location.number(field::LOCATION_ID, id);
        location.number(field::LOCATION_MAPPING_ID, libraries[function.library.as_str()]);
        location.message(field::LOCATION_LINE, &line);
        profile.message(field::PROFILE_LOCATION, &location);
        let name = strings.number(&function.name);
        let mut described = Message::default();
        described.number(field::FUNCTION_ID, id);
        described.number(field::FUNCTION_NAME, name);
        described.number(field::FUNCTION_SYSTEM_NAME, name);
        if function.file != symbol::UNKNOWN {
            described.number(field::FUNCTION_FILENAME, strings.number(&function.file));
        }
        described.number(field::FUNCTION_START_LINE, function.first_line.into());
        profile.message(field::PROFILE_FUNCTION, &described);
    }
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::tests::{decoded, list, Decoded};
    use super::*;
    use crate::report::detail::tests::called;
    use crate::report::tests::count_report;

    #[test]
    fn samples_are_contexts_and_values_add_up() {
        let bytes = show(&count_report(), &called());
        let fields = decoded(&bytes);
        let of = |number| {
            fields.iter().filter(move |(field, _)| *field == number).map(|(_, value)| match value {
                Decoded::Bytes(bytes) => *bytes,
                Decoded::Number(_) => panic!("a number"),
            })
        };
        let strings: Vec<&str> =
            of(field::PROFILE_STRING_TABLE).map(|text| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(strings[0], "");
        let types: Vec<&str> = of(field::PROFILE_SAMPLE_TYPE)
            .map(|value_type| match decoded(value_type)[0] {
                (field::VALUE_TYPE_TYPE, Decoded::Number(name)) => strings[name as usize],
                ref other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(types, ["instructions", "blocks", "loads", "stores"]);
        // Locations with the innermost function first, and values in the order of the types.
        let samples: Vec<(Vec<u64>, Vec<u64>)> = of(field::PROFILE_SAMPLE)
            .map(|sample| match &decoded(sample)[..] {
                [(1, Decoded::Bytes(stack)), (2, Decoded::Bytes(values))] => (list(stack), list(values)),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(samples, [(vec![2], vec![5, 0, 0, 0]), (vec![1, 2], vec![16, 0, 2, 0])]);
        let functions: Vec<Vec<(u32, Decoded<'_>)>> = of(field::PROFILE_FUNCTION).map(decoded).collect();
        let name = |index: usize| match functions[index][1] {
            (field::FUNCTION_NAME, Decoded::Number(name)) => strings[name as usize],
            ref other => panic!("{other:?}"),
        };
        assert_eq!((functions.len(), name(0), name(1)), (2, "leaf", "main"));
        assert_eq!(of(field::PROFILE_LOCATION).count(), 2);
        assert_eq!(of(field::PROFILE_MAPPING).count(), 2);
    }
}
