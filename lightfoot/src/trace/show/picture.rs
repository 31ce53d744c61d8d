//! A trace as a picture: a panel for each metric on one axis, with its phases.

use super::{place, rate, Shown};
use measure::trace::Unit;
use plot::timeline::{timeline, Phase, Row, Timeline};
use present::terminal::{middle_cut, printable};

/// The most characters of the program in the title.
const TITLE: usize = 60;

/// The picture, as SVG. Values are drawn as rates for each interval, so that a record that contains
/// missed ticks is not drawn as a high one.
pub fn picture(shown: &Shown) -> String {
    let trace = &shown.trace;
    let mut edges: Vec<f64> = trace.records.iter().map(|record| record.start as f64).collect();
    edges.extend(trace.records.last().map(|record| record.start.saturating_add(record.dt) as f64));
    let row = |(index, metric): (usize, &measure::trace::Metric)| Row {
        name: metric.name.clone(),
        values: trace
            .records
            .iter()
            .map(|record| Some(rate(trace, record, index)).filter(|rate| rate.is_finite()))
            .collect(),
    };
    let rows: Vec<Row> = trace.header.metrics.iter().enumerate().map(row).collect();
    let phase = |phase: &super::Phase| Phase {
        extent: (phase.start as f64, phase.end as f64),
        name: phase.number.to_string(),
    };
    let phases: Vec<Phase> = shown.phases.iter().map(phase).collect();
    let unit = trace.header.interval.unit;
    timeline(&Timeline {
        title: &format!("{}: {}", middle_cut(&printable(&shown.program()), TITLE), shown.about()),
        axis: if unit == Unit::Nanoseconds { "time" } else { unit.name() },
        edges: &edges,
        phases: if phases.len() > 1 { &phases } else { &[] },
        rows: &rows,
        place: match unit {
            Unit::Nanoseconds => |at| place(Unit::Nanoseconds, at as u64),
            Unit::Instructions | Unit::Cycles => |at| place(Unit::Cycles, at as u64),
        },
        value: |value| present::number::brief(value.round() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::shown;
    use super::*;

    #[test]
    fn every_metric_has_a_panel_and_every_phase_a_name() {
        let drawn = picture(&shown());
        assert_eq!(drawn.matches("<polyline").count(), 3);
        assert!(
            drawn.contains(">phase<")
                && drawn.contains(">1<")
                && drawn.contains(">2<")
                && drawn.contains(">fn:&lt;x&gt;<")
        );
        assert!(drawn.contains("prog &lt;b&gt;: 61 records of 1,000 instructions"), "{drawn}");
    }
}
