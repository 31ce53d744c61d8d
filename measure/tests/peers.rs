//! Our numbers are those of scipy (Spearman, 1e-12) and dtaidistance (dynamic time warping, 1e-9),
//! from a file of theirs and, where they are installed, live.

use lightfoot_measure::align::{align, Band};
use lightfoot_measure::rank::spearman;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

#[derive(Deserialize)]
struct Peers {
    spearman: Vec<Ranked>,
    dtw: Vec<Warped>,
}

#[derive(Deserialize)]
struct Ranked {
    a: Vec<f64>,
    b: Vec<f64>,
    rho: f64,
}

#[derive(Deserialize)]
struct Warped {
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    window: Option<usize>,
    distance: f64,
}

fn agree(json: &str) {
    let peers: Peers = serde_json::from_str(json).unwrap();
    assert!(peers.spearman.len() > 20 && peers.dtw.len() > 40);
    for case in &peers.spearman {
        let rho = spearman(&case.a, &case.b).unwrap();
        assert!((rho - case.rho).abs() < 1e-12, "{rho} and {} for {:?} {:?}", case.rho, case.a, case.b);
    }
    for case in &peers.dtw {
        let band = case.window.map_or(Band::Whole, Band::Parallel);
        let distance = align(&case.a, &case.b, band).distance();
        let (n, m) = (case.a[0].len(), case.b[0].len());
        assert!(
            (distance - case.distance).abs() < 1e-9,
            "{n} by {m}, {band:?}: {distance} and {}",
            case.distance
        );
    }
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

#[test]
fn the_file_agrees() {
    agree(&std::fs::read_to_string(fixtures().join("peers.json")).unwrap());
}

#[test]
fn the_packages_agree() {
    let python = std::env::var("LIGHTFOOT_PYTHON").unwrap_or_else(|_| "python3".into());
    match Command::new(&python).arg(fixtures().join("compute.py")).output() {
        Ok(output) if output.status.success() => agree(&String::from_utf8(output.stdout).unwrap()),
        Ok(_) => println!("skipped: {python} has no scipy or no dtaidistance"),
        Err(error) => println!("skipped: {python}: {error}"),
    }
}
