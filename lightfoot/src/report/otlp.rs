//! Writes OpenTelemetry profiles: stacks are calling contexts, and each column of the report is a
//! profile of its own, because a profile of this format has one type of sample.
//!
//! The file is a `ProfilesData` of `opentelemetry.proto.profiles.v1development`, version 1.11.0, as
//! protocol buffers; the fields of samples have these numbers since 1.10. A request that exports
//! profiles to a collector has the same two fields, so the file is the body of such a request, too.
//! Tables of the dictionary begin with an empty entry, which stands for what is unknown. A call has
//! the line that the function begins at, because contexts know no lines. **Leaves out** threads,
//! addresses, and the time of day: the time of a profile is unset. Source: `profiles.proto` and
//! `profiles_service.proto` of open-telemetry/opentelemetry-proto.

use super::detail::Detail;
use super::measurement::Report;
use super::pprof::exists;
use super::protobuf::{Message, Strings};
use super::Metric;
use crate::run::tally::Counts;
use std::collections::{BTreeMap, HashMap};

/// Fields of the messages, by their names in the proto files.
mod field {
    pub(super) const DATA_RESOURCE_PROFILES: u32 = 1;
    pub(super) const DATA_DICTIONARY: u32 = 2;
    pub(super) const RESOURCE_PROFILES_RESOURCE: u32 = 1;
    pub(super) const RESOURCE_PROFILES_SCOPE_PROFILES: u32 = 2;
    pub(super) const RESOURCE_ATTRIBUTES: u32 = 1;
    pub(super) const KEY_VALUE_KEY: u32 = 1;
    pub(super) const KEY_VALUE_VALUE: u32 = 2;
    pub(super) const ANY_STRING: u32 = 1;
    pub(super) const ANY_ARRAY: u32 = 5;
    pub(super) const ARRAY_VALUES: u32 = 1;
    pub(super) const SCOPE_PROFILES_SCOPE: u32 = 1;
    pub(super) const SCOPE_PROFILES_PROFILES: u32 = 2;
    pub(super) const SCOPE_NAME: u32 = 1;
    pub(super) const SCOPE_VERSION: u32 = 2;
    pub(super) const PROFILE_SAMPLE_TYPE: u32 = 1;
    pub(super) const PROFILE_SAMPLES: u32 = 2;
    pub(super) const PROFILE_DURATION_NANO: u32 = 4;
    pub(super) const VALUE_TYPE_TYPE: u32 = 1;
    pub(super) const VALUE_TYPE_UNIT: u32 = 2;
    pub(super) const SAMPLE_STACK_INDEX: u32 = 1;
    pub(super) const SAMPLE_VALUES: u32 = 4;
    pub(super) const DICTIONARY_MAPPINGS: u32 = 1;
    pub(super) const DICTIONARY_LOCATIONS: u32 = 2;
    pub(super) const DICTIONARY_FUNCTIONS: u32 = 3;
    pub(super) const DICTIONARY_LINKS: u32 = 4;
    pub(super) const DICTIONARY_STRINGS: u32 = 5;
    pub(super) const DICTIONARY_ATTRIBUTES: u32 = 6;
    pub(super) const DICTIONARY_STACKS: u32 = 7;
    pub(super) const LINK_TRACE_ID: u32 = 1;
    pub(super) const LINK_SPAN_ID: u32 = 2;
    pub(super) const MAPPING_FILENAME: u32 = 4;
    pub(super) const LOCATION_MAPPING: u32 = 1;
    pub(super) const LOCATION_LINES: u32 = 3;
    pub(super) const LINE_FUNCTION: u32 = 1;
    pub(super) const LINE_LINE: u32 = 2;
    pub(super) const FUNCTION_NAME: u32 = 1;
    pub(super) const FUNCTION_SYSTEM_NAME: u32 = 2;
    pub(super) const FUNCTION_FILENAME: u32 = 3;
    pub(super) const FUNCTION_START_LINE: u32 = 4;
    pub(super) const STACK_LOCATIONS: u32 = 1;
}

/// The profiles.
pub fn show(report: &Report, detail: &Detail) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut dictionary = Message::default();
    places(detail, &mut strings, &mut dictionary);
    let contexts = contexts(detail);
    stacks(detail, &contexts, &mut dictionary);
    let mut scope_profiles = Message::default();
    let mut scope = Message::default();
    scope.bytes(field::SCOPE_NAME, b"lightfoot");
    scope.bytes(field::SCOPE_VERSION, env!("CARGO_PKG_VERSION").as_bytes());
    scope_profiles.message(field::SCOPE_PROFILES_SCOPE, &scope);
    // Tools show the first profile unless they are told otherwise: that is the column that sorts.
    let mut metrics: Vec<&Metric> = report.metrics().filter(|metric| exists(metric, detail)).collect();
    if let Some(place) = report.sort.and_then(|sort| metrics.iter().position(|one| one.field == sort.field)) {
        metrics[..=place].rotate_right(1);
    }
    for metric in metrics {
        let profile = profile(report, metric, &contexts, &mut strings);
        scope_profiles.message(field::SCOPE_PROFILES_PROFILES, &profile);
    }
    for text in &strings.all {
        dictionary.bytes(field::DICTIONARY_STRINGS, text.as_bytes());
    }
    let mut resource_profiles = Message::default();
    resource_profiles.message(field::RESOURCE_PROFILES_RESOURCE, &resource(report));
    resource_profiles.message(field::RESOURCE_PROFILES_SCOPE_PROFILES, &scope_profiles);
    let mut data = Message::default();
    data.message(field::DATA_RESOURCE_PROFILES, &resource_profiles);
    data.message(field::DATA_DICTIONARY, &dictionary);
    data.0
}

/// What was measured, by names of OpenTelemetry's semantic conventions.
fn resource(report: &Report) -> Message {
    let text = |text: &str| {
        let mut value = Message::default();
        value.bytes(field::ANY_STRING, text.as_bytes());
        value
    };
    let mut arguments = Message::default();
    for argument in &report.command {
        arguments.message(field::ARRAY_VALUES, &text(argument));
    }
    let mut list = Message::default();
    list.message(field::ANY_ARRAY, &arguments);
    let program = report.command.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or(program);
    let attributes = [
        ("service.name", text(name)),
        ("process.executable.name", text(name)),
        ("process.executable.path", text(program)),
        ("process.command_args", list),
    ];
    let mut resource = Message::default();
    for (key, value) in attributes {
        let mut attribute = Message::default();
        attribute.bytes(field::KEY_VALUE_KEY, key.as_bytes());
        attribute.message(field::KEY_VALUE_VALUE, &value);
        resource.message(field::RESOURCE_ATTRIBUTES, &attribute);
    }
    resource
}

/// The costs of each context that has any, with the stack that it becomes; stacks begin at 1.
fn contexts(detail: &Detail) -> Vec<(u32, Counts)> {
    let mut by_context = BTreeMap::<u32, Counts>::new();
    let samples = detail.calls.iter().flat_map(|calls| &calls.samples);
    for sample in samples.filter(|sample| sample.node > 0) {
        by_context.entry(sample.node).or_default().add(&sample.counts);
    }
    by_context.into_iter().collect()
}

/// The profile of one column: a sample for each context with costs, which add up to the whole.
fn profile(report: &Report, metric: &Metric, contexts: &[(u32, Counts)], strings: &mut Strings) -> Message {
    let mut value_type = Message::default();
    value_type.number(field::VALUE_TYPE_TYPE, strings.number(metric.field));
    value_type.number(field::VALUE_TYPE_UNIT, strings.number("count"));
    let mut profile = Message::default();
    profile.message(field::PROFILE_SAMPLE_TYPE, &value_type);
    for ((_, counts), stack) in contexts.iter().zip(1..) {
        let value = (metric.value)(counts).unwrap_or(0);
        if value > 0 {
            let mut sample = Message::default();
            sample.number(field::SAMPLE_STACK_INDEX, stack);
            sample.packed(field::SAMPLE_VALUES, std::iter::once(value));
            profile.message(field::PROFILE_SAMPLES, &sample);
        }
    }
    profile.number(field::PROFILE_DURATION_NANO, (report.wall_s * 1e9) as u64);
    profile
}

/// The stack of each context, the innermost function first.
fn stacks(detail: &Detail, contexts: &[(u32, Counts)], dictionary: &mut Message) {
    dictionary.message(field::DICTIONARY_STACKS, &Message::default());
    let Some(calls) = &detail.calls else { return };
    for (context, _) in contexts {
        let mut stack = Message::default();
        let locations = calls.functions_of(*context).map(|function| u64::from(function) + 1);
        stack.packed(field::STACK_LOCATIONS, locations);
        dictionary.message(field::DICTIONARY_STACKS, &stack);
    }
}

/// The libraries, and a location and a function for each function; all begin at 1.
fn places(detail: &Detail, strings: &mut Strings, dictionary: &mut Message) {
    let tables = [
        field::DICTIONARY_MAPPINGS,
        field::DICTIONARY_LOCATIONS,
        field::DICTIONARY_FUNCTIONS,
        field::DICTIONARY_ATTRIBUTES,
    ];
    tables.into_iter().for_each(|table| dictionary.message(table, &Message::default()));
    // Some readers want identifiers at their full length.
    let mut link = Message::default();
    link.bytes(field::LINK_TRACE_ID, &[0; 16]);
    link.bytes(field::LINK_SPAN_ID, &[0; 8]);
    dictionary.message(field::DICTIONARY_LINKS, &link);
    let mut libraries = HashMap::<&str, u64>::new();
    for (function, id) in detail.functions.iter().zip(1..) {
        let next = libraries.len() as u64 + 1;
        let library = *libraries.entry(&function.library).or_insert(next);
        if library == next {
            let mut mapping = Message::default();
            mapping.number(field::MAPPING_FILENAME, strings.number(&function.library));
            dictionary.message(field::DICTIONARY_MAPPINGS, &mapping);
        }
        let mut line = Message::default();
        line.number(field::LINE_FUNCTION, id);
        line.number(field::LINE_LINE, function.first_line.into());
        let mut location = Message::default();
        location.number(field::LOCATION_MAPPING, library);
        location.message(field::LOCATION_LINES, &line);
        dictionary.message(field::DICTIONARY_LOCATIONS, &location);
        let name = strings.number(&function.name);
        let mut described = Message::default();
        described.number(field::FUNCTION_NAME, name);
        described.number(field::FUNCTION_SYSTEM_NAME, name);
        if function.file != symbol::UNKNOWN {
            described.number(field::FUNCTION_FILENAME, strings.number(&function.file));
        }
        described.number(field::FUNCTION_START_LINE, function.first_line.into());
        dictionary.message(field::DICTIONARY_FUNCTIONS, &described);
    }
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::tests::{decoded, list, Decoded};
    use super::*;
    use crate::report::detail::tests::called;
    use crate::report::tests::count_report;

    /// The messages and texts in the fields `number` of a message.
    fn inner(message: &[u8], number: u32) -> Vec<&[u8]> {
        let fields = decoded(message).into_iter().filter(|(field, _)| *field == number);
        fields
            .map(|(_, value)| match value {
                Decoded::Bytes(bytes) => bytes,
                Decoded::Number(number) => panic!("the number {number}"),
            })
            .collect()
    }

    fn number(message: &[u8], number: u32) -> u64 {
        let found = decoded(message).into_iter().find(|(field, _)| *field == number);
        match found {
            Some((_, Decoded::Number(value))) => value,
            None => 0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tables_begin_with_nothing_and_stacks_name_functions() {
        let bytes = show(&count_report(), &called());
        let dictionary = inner(&bytes, field::DATA_DICTIONARY)[0];
        let strings: Vec<&str> = inner(dictionary, field::DICTIONARY_STRINGS)
            .into_iter()
            .map(|text| std::str::from_utf8(text).unwrap())
            .collect();
        assert_eq!(strings[0], "");
        for table in [1, 2, 3, 6, 7] {
            assert_eq!(inner(dictionary, table)[0], b"", "table {table}");
        }
        let (functions, locations) =
            (inner(dictionary, field::DICTIONARY_FUNCTIONS), inner(dictionary, field::DICTIONARY_LOCATIONS));
        let name = |location: u64| {
            let line = inner(locations[location as usize], field::LOCATION_LINES)[0];
            let function = functions[number(line, field::LINE_FUNCTION) as usize];
            strings[number(function, field::FUNCTION_NAME) as usize]
        };
        let stacks: Vec<Vec<&str>> = inner(dictionary, field::DICTIONARY_STACKS)
            .into_iter()
            .map(|stack| match inner(stack, field::STACK_LOCATIONS).as_slice() {
                [] => Vec::new(),
                [locations] => list(locations).into_iter().map(name).collect(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(stacks, [vec![], vec!["main"], vec!["leaf", "main"]]);
    }

    /// Stacks with their values.
    type Samples = Vec<(u64, Vec<u64>)>;

    #[test]
    fn each_column_is_a_profile() {
        let bytes = show(&count_report(), &called());
        let dictionary = inner(&bytes, field::DATA_DICTIONARY)[0];
        let strings = inner(dictionary, field::DICTIONARY_STRINGS);
        let resource_profiles = inner(&bytes, field::DATA_RESOURCE_PROFILES)[0];
        let scopes = inner(resource_profiles, field::RESOURCE_PROFILES_SCOPE_PROFILES);
        let profiles = inner(scopes[0], field::SCOPE_PROFILES_PROFILES);
        let sums: Vec<(&str, Samples)> = profiles
            .into_iter()
            .map(|profile| {
                let of = number(inner(profile, field::PROFILE_SAMPLE_TYPE)[0], field::VALUE_TYPE_TYPE);
                let samples = inner(profile, field::PROFILE_SAMPLES).into_iter().map(|sample| {
                    let values = list(inner(sample, field::SAMPLE_VALUES)[0]);
                    (number(sample, field::SAMPLE_STACK_INDEX), values)
                });
                (std::str::from_utf8(strings[of as usize]).unwrap(), samples.collect())
            })
            .collect();
        let expected = [
            ("instructions", vec![(1, vec![5]), (2, vec![16])]),
            ("blocks", vec![]),
            ("loads", vec![(2, vec![2])]),
            ("stores", vec![]),
        ];
        assert_eq!(sums, expected);
    }
}
