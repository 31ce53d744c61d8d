//! Traffic over the size: measured and simulated, with the sizes at which a layer condition ends.

use super::findings::{Findings, Setting};
use super::kernel::ELEMENT_BYTES;
use super::points::{Point, LINK_NAMES, PRODUCT};
use super::processor::Processor;
use super::stencil::Stencil;
use anyhow::Result;
use plot::curves::{curves, Curve, Curves};
use present::order::SortRows;

/// A plot for each kernel, on the machine and in the setting of which it has most points.
pub(super) fn plots(findings: &Findings) -> Result<Vec<(String, String)>> {
    let mut tables: Vec<Vec<&Point>> = Vec::new();
    for point in findings.points.iter().filter(|point| !point.is_stream()) {
        let same = |other: &&mut Vec<&Point>| {
            let first = other[0];
            let table = (&first.machine, &first.kernel, Setting::of(first));
            table == (&point.machine, &point.kernel, Setting::of(point))
        };
        match tables.iter_mut().find(same) {
            Some(table) => table.push(point),
            None => tables.push(vec![point]),
        }
    }
    let mut plots: Vec<(String, String)> = Vec::new();
    // The most points of a kernel first; of equals the later machine.
    tables.reverse();
    tables.sort_rows_by_key(|table| std::cmp::Reverse(table.len()));
    for table in tables.iter().filter(|table| table.len() > 1) {
        let name = file_name(table[0]);
        if plots.iter().all(|(other, _)| *other != name) {
            plots.push((name, drawn(findings, table)?));
        }
    }
    plots.sort_rows(Ord::cmp);
    Ok(plots)
}

/// The kernel's name as part of a file's.
fn file_name(point: &Point) -> String {
    let plain = point.kernel.to_lowercase().replace('/', "-");
    match Setting::of(point) {
        Setting::Off => format!("{plain}-off"),
        _ => plain,
    }
}

fn drawn(findings: &Findings, table: &[&Point]) -> Result<String> {
    let (first, setting) = (table[0], Setting::of(table[0]));
    let mut lines = Vec::new();
    for (link, name) in LINK_NAMES.iter().enumerate() {
        let measured: Vec<(f64, f64)> =
            table.iter().filter_map(|point| Some((point.n as f64, point.measured[link]?.total()))).collect();
        let simulated: Vec<(f64, f64)> = table
            .iter()
            .filter_map(|point| {
                Some((point.n as f64, findings.compared(point, setting.judged_by(), link)?.predicted))
            })
            .collect();
        if !measured.is_empty() {
            lines.push(Curve { name: format!("{name} measured"), points: measured });
            lines.push(Curve { name: format!("{name} simulated"), points: simulated });
        }
    }
    let most = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).fold(1.0, f64::max);
    let top = most * 1.1;
    let sizes = || table.iter().map(|point| point.n as f64);
    let (least, largest) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    for (name, size) in breaks(first)?.into_iter().filter(|(_, size)| (least..=largest).contains(size)) {
        lines.push(Curve { name, points: vec![(size, 0.0), (size, top)] });
    }
    Ok(curves(&Curves {
        title: format!("{} on {}, prefetchers {}", first.kernel, first.machine, setting.shown()),
        axes: ["N".into(), "bytes per update".into()],
        range: (0.0, top),
        curves: lines,
    }))
}

/// The sizes up to which a level keeps what the kernel uses again.
fn breaks(point: &Point) -> Result<Vec<(String, f64)>> {
    let processor = Processor::named(&point.machine)?;
    let machine = processor.machine()?;
    let stencil = Stencil::named(&point.kernel, point.n, processor.vector, 0);
    let mut breaks = Vec::new();
    for (number, cache) in (1..).zip(machine.data_path()) {
        if point.kernel == PRODUCT {
            // Between two uses of an element of x lie a row of A and the rest of x.
            breaks.push((format!("L{number} keeps x"), (cache.size_bytes / 2 / ELEMENT_BYTES) as f64));
        } else if let Some(stencil) = &stencil {
            let (rows, planes) = stencil.layers(cache.size_bytes);
            breaks.push((format!("L{number} keeps rows"), rows));
            breaks.push((format!("L{number} keeps planes"), planes));
        }
    }
    Ok(breaks)
}

#[cfg(test)]
mod tests {
    use super::super::points::points;
    use super::*;

    #[test]
    fn breaks_lie_where_the_counters_show_them() {
        let points = points().unwrap();
        let breaks = |kernel: &str, machine: &str| {
            let one = points.iter().find(|point| point.kernel == kernel && point.machine == machine);
            super::breaks(one.unwrap()).unwrap()
        };
        // L1-L2 rises between 2,000 and 2,500, L2-L3 between 13,000 and 23,000.
        let product = breaks(PRODUCT, "BroadwellEP_E5-2697v4");
        assert_eq!(product[0], ("L1 keeps x".into(), 2048.0));
        assert_eq!(product[1], ("L2 keeps x".into(), 16384.0));
        // Between 490 and 750.
        let star = breaks("3D/r1/homogeneous/star/constant", "BroadwellEP_E5-2697_CoD");
        assert!(star[0].1 > 490.0 && star[0].1 < 750.0, "{star:?}");
    }
}
