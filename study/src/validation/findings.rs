//! What the study found, and how predictions are held against measurements.

use super::error::{relative, Summary};
use super::experiment::Simulated;
use super::points::{Moved, Point, LINKS};
use super::processor::{CACHEGRIND, DESCRIBED, FETCHING, MODELS};
use serde::Serialize;

/// The predictions that the points bring along.
pub(super) const PYCACHESIM: &str = "pycachesim";

/// The links whose digits count; of the third the source says that it shows the regime alone.
pub(super) const JUDGED: usize = 2;

/// The bar: the largest mean error in percent, without prefetchers and with them, and the least
/// points, processors and kernels.
pub(super) const BAR_PERCENT: [f64; 2] = [3.0, 10.0];
pub(super) const BAR_EXTENT: [usize; 3] = [60, 3, 5];

/// Points with the same state of the prefetchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Setting {
    /// Prefetchers off.
    Off,
    /// Prefetchers on, as far as the source says.
    On,
    /// Streams over arrays that no cache holds; nothing is said of prefetchers.
    Streams,
}

pub(super) const SETTINGS: [Setting; 3] = [Setting::Off, Setting::On, Setting::Streams];

impl Setting {
    pub(super) fn shown(self) -> &'static str {
        match self {
            Setting::Off => "off",
            Setting::On => "on",
            Setting::Streams => "streams",
        }
    }

    pub(super) fn of(point: &Point) -> Setting {
        match (point.is_stream(), point.prefetched()) {
            (true, _) => Setting::Streams,
            (_, true) => Setting::On,
            _ => Setting::Off,
        }
    }

    /// The model that the bar is about: prefetchers run where they ran.
    pub(super) fn judged_by(self) -> &'static str {
        match self {
            Setting::On => FETCHING,
            Setting::Off | Setting::Streams => DESCRIBED,
        }
    }
}

/// A summary of a model's errors on a link.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) setting: Setting,
    pub(super) link: usize,
    pub(super) model: &'static str,
    pub(super) summary: Summary,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) points: Vec<Point>,
    pub(super) simulated: Vec<Simulated>,
    pub(super) rows: Vec<Row>,
}

/// A prediction beside its measurement: bytes per update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) predicted: f64,
    pub(super) measured: f64,
}

impl Compared {
    pub(super) fn error(self) -> Option<f64> {
        relative(self.predicted, self.measured)
    }
}

impl Findings {
    pub(super) fn simulated(&self, id: usize, model: &str) -> Option<&Simulated> {
        self.simulated.iter().find(|one| one.id == id && one.model == model)
    }

    /// What a model predicts for a link, beside the measurement: load and evict together, but loads
    /// alone for a model that counts no evictions.
    pub(super) fn compared(&self, point: &Point, model: &str, link: usize) -> Option<Compared> {
        let measured = point.measured[link]?;
        if model == PYCACHESIM {
            return Some(Compared { predicted: point.pycachesim[link]?, measured: measured.total() });
        }
        let predicted = self.simulated(point.id, model)?.moved(link)?;
        let of = |moved: Moved| if model == CACHEGRIND { moved.load } else { moved.total() };
        Some(Compared { predicted: of(predicted), measured: of(measured) })
    }

    /// Points whose errors count, of a setting.
    pub(super) fn counted(&self, setting: Setting) -> impl Iterator<Item = &Point> {
        let own = move |point: &&Point| Setting::of(point) == setting && point.left_out().is_none();
        self.points.iter().filter(own)
    }

    fn errors(&self, setting: Setting, model: &str, link: usize) -> Vec<f64> {
        let of = |point: &Point| self.compared(point, model, link).and_then(Compared::error);
        self.counted(setting).filter_map(of).collect()
    }

    /// The summaries of all settings, links and models.
    pub(super) fn summaries(&self) -> Vec<Row> {
        let models: Vec<&'static str> = MODELS.iter().map(|model| model.name).chain([PYCACHESIM]).collect();
        let mut rows = Vec::new();
        for setting in SETTINGS {
            for link in 0..LINKS {
                for &model in &models {
                    let summary = Summary::of(&self.errors(setting, model, link));
                    rows.extend(summary.map(|summary| Row { setting, link, model, summary }));
                }
            }
        }
        rows
    }

    pub(super) fn row(&self, setting: Setting, link: usize, model: &str) -> Option<&Summary> {
        let own = |row: &&Row| row.setting == setting && row.link == link && row.model == model;
        self.rows.iter().find(own).map(|row| &row.summary)
    }

    /// Points, processors and kernels whose errors count on a judged link.
    pub(super) fn extent(&self) -> [usize; 3] {
        let judged = |point: &&Point| point.measured[..JUDGED].iter().any(Option::is_some);
        let points: Vec<&Point> =
            SETTINGS.iter().flat_map(|setting| self.counted(*setting)).filter(judged).collect();
        let distinct =
            |of: fn(&Point) -> &str| present::order::set_of(points.iter().map(|point| of(point))).len();
        // A processor's clusters are no processor of their own: the name ends at an underscore.
        [
            points.len(),
            distinct(|point| point.machine.split('_').next().unwrap_or("")),
            distinct(|point| &point.kernel),
        ]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::points::Prefetchers;
    use super::*;

    fn point(id: usize, n: usize, prefetchers: Prefetchers) -> Point {
        Point {
            id,
            source: "sc19".into(),
            machine: format!("Machine{id}_CoD"),
            kernel: "mvm".into(),
            n,
            threads: 4,
            prefetchers,
            measured: [Some(Moved { load: 8.0, evict: 2.0 }), None, Some(Moved { load: 4.0, evict: 0.0 })],
            pycachesim: [Some(11.0), None, None],
        }
    }

    fn simulated(id: usize, model: &str, load: f64) -> Simulated {
        let links = |load| [Some(Moved { load, evict: 1.0 }), None, None];
        Simulated { id, model: model.into(), layouts: vec![links(load - 1.0), links(load + 1.0)] }
    }

    /// Three points: one rough, one without prefetchers, one with.
    pub(crate) fn findings() -> Findings {
        let points = vec![
            point(1, 200, Prefetchers::Off),
            point(2, 400, Prefetchers::Off),
            point(3, 1000, Prefetchers::On),
        ];
        let simulated = vec![
            simulated(1, DESCRIBED, 90.0),
            simulated(2, DESCRIBED, 9.5),
            simulated(2, CACHEGRIND, 6.0),
            simulated(3, DESCRIBED, 8.0),
            simulated(3, FETCHING, 8.5),
        ];
        let mut findings = Findings {
            schema: 1,
            date: "2026-11-23".into(),
            effort: "quick",
            version: "0",
            points,
            simulated,
            rows: Vec::new(),
        };
        findings.rows = findings.summaries();
        findings
    }

    #[test]
    fn a_rough_point_does_not_count() {
        let findings = findings();
        let summary = findings.row(Setting::Off, 0, DESCRIBED).unwrap();
        assert_eq!(summary.points, 1);
        assert!((summary.mean - 5.0).abs() < 1e-9, "10.5 of 10: {summary:?}");
        assert_eq!(findings.extent(), [2, 2, 1]);
    }

    #[test]
    fn a_model_without_evictions_is_compared_by_loads() {
        let findings = findings();
        let compared = findings.compared(&findings.points[1], CACHEGRIND, 0).unwrap();
        assert_eq!(compared, Compared { predicted: 6.0, measured: 8.0 });
        let theirs = findings.compared(&findings.points[1], PYCACHESIM, 0).unwrap();
        assert!((theirs.error().unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(findings.compared(&findings.points[1], DESCRIBED, 1), None, "not measured");
        assert_eq!(findings.compared(&findings.points[1], DESCRIBED, 2), None, "not simulated");
    }

    #[test]
    fn points_with_prefetchers_are_judged_by_the_model_with_them() {
        let findings = findings();
        let summary = findings.row(Setting::On, 0, Setting::On.judged_by()).unwrap();
        assert!((summary.mean - 5.0).abs() < 1e-9 && summary.bias < 0.0, "9.5 of 10: {summary:?}");
    }
}
