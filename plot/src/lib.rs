//! Plots as SVG: small, self-contained, readable by day and by night.
//!
//! All plots share one frame, one set of colours, and one way to write words and numbers. Each kind
//! has a file: [`bars`] of ratios, [`heat_map`]s of verdicts, [`curves`] over linear axes,
//! [`flame`] graphs of calls, [`lines`] over items or bytes, [`panels`] of one series each,
//! [`scatter`] plots over logarithmic axes, [`tiles`] over tile sizes, and [`timeline`]s of metrics
//! with phases.
//! Colours are those of Okabe and Ito (2008), which people with any colour vision can distinguish,
//! and colour is never the only sign of a difference. **Leaves out** scripts, fonts and error bars.
//!
//! ```
//! use lightfoot_plot::lines::{lines, Axis, Lines, Series};
//!
//! let points = vec![(1e3, 10.0), (1e6, 80.0)];
//! let series = vec![Series { name: "binary search".into(), points }];
//! let title = "Time of a lookup".into();
//! let svg = lines(&Lines { title, x: "keys", y: "ns", axis: Axis::Linear, series });
//! assert!(svg.starts_with("<svg") && svg.contains("binary search"));
//! ```

#![forbid(unsafe_code)]

pub mod bars;
pub mod curves;
pub mod flame;
pub mod heat_map;
pub mod lines;
pub mod panels;
pub mod scatter;
mod svg;
pub mod tiles;
pub mod timeline;
