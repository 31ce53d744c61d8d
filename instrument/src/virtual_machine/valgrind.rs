//! The processor that Valgrind 3.19 shows a program of 64 bits on a machine with AVX2: recorded by a
//! program that asked for every leaf under it. With it comes the environment that Valgrind gives to
//! programs.

use super::leaves::{Leaves, Row, Sub};
use std::path::Path;

const ROWS: &[Row] = &[
    (0, Sub::Any, [0xd, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]),
    (0x1, Sub::Any, [0x0003_06c3, 0x0210_0800, 0x7ffa_fbff, 0xbfeb_fbff]),
    (0x2, Sub::Any, [0x7603_6301, 0x00f0_b6ff, 0, 0x00c1_0000]),
    (0x3, Sub::Any, [0, 0, 0, 0]),
    (0x4, Sub::Only(0), [0x1c00_4121, 0x01c0_003f, 0x3f, 0]),
    (0x4, Sub::Only(1), [0x1c00_4122, 0x01c0_003f, 0x3f, 0]),
    (0x4, Sub::Only(2), [0x1c00_4143, 0x01c0_003f, 0x1ff, 0]),
    (0x4, Sub::Only(3), [0x1c03_c163, 0x03c0_003f, 0x1fff, 0x6]),
    (0x5, Sub::Any, [0x40, 0x40, 0x3, 0x0004_2120]),
    (0x6, Sub::Any, [0x77, 0x2, 0x9, 0]),
    (0x7, Sub::Only(0), [0, 0x0004_27aa, 0, 0]),
    (0x8, Sub::Any, [0, 0, 0, 0]),
    (0x9, Sub::Any, [0, 0, 0, 0]),
    (0xa, Sub::Any, [0x0730_0803, 0, 0, 0x603]),
    (0xb, Sub::Only(0), [0x1, 0x2, 0x100, 0x2]),
    (0xb, Sub::Only(1), [0x4, 0x8, 0x201, 0x2]),
    (0xc, Sub::Any, [0, 0, 0, 0]),
    (0xd, Sub::Only(0), [0x7, 0x340, 0x340, 0]),
    (0xd, Sub::Only(2), [0x100, 0x240, 0, 0]),
    (0x8000_0000, Sub::Any, [0x8000_0008, 0, 0, 0]),
    (0x8000_0001, Sub::Any, [0, 0, 0x21, 0x2c10_0800]),
    (0x8000_0002, Sub::Any, [0x6574_6e49, 0x2952_286c, 0x726f_4320, 0x4d54_2865]),
    (0x8000_0003, Sub::Any, [0x3769_2029, 0x3139_342d, 0x2051_4d30, 0x2055_5043]),
    (0x8000_0004, Sub::Any, [0x2e32_2040, 0x4847_3039, 0x7a, 0]),
    (0x8000_0005, Sub::Any, [0, 0, 0, 0]),
    (0x8000_0006, Sub::Any, [0, 0, 0x0100_6040, 0]),
    (0x8000_0007, Sub::Any, [0, 0, 0, 0x100]),
    (0x8000_0008, Sub::Any, [0x3027, 0, 0, 0]),
];

/// What it answers to a leaf that it does not know: what it answers to leaf 13.
const UNKNOWN: [u32; 4] = [7, 0x340, 0x340, 0];

/// Its answers.
pub(super) fn leaves() -> Leaves {
    Leaves::Table(ROWS.to_vec(), UNKNOWN)
}

/// The variable that names libraries which a program loads first.
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// Folders in which distributions keep Valgrind's library.
const FOLDERS: [&str; 4] = [
    "/usr/libexec/valgrind",
    "/usr/lib/x86_64-linux-gnu/valgrind",
    "/usr/lib64/valgrind",
    "/usr/lib/valgrind",
];
/// The library that Valgrind makes every program load first.
const LIBRARY: &str = "vgpreload_core-amd64-linux.so";
/// The folder that Debian's script puts behind the paths of libraries.
const DEBUG: &str = "/usr/lib/debug";

/// The variables that Valgrind sets. Its library is left out where Valgrind is not installed.
pub(super) fn environment() -> Vec<(&'static str, String)> {
    let behind = |name: &str, value: &str, between: char| match std::env::var(name) {
        Ok(own) if !own.is_empty() => format!("{own}{between}{value}"),
        _ => value.into(),
    };
    let mut variables = vec![("GLIBCPP_FORCE_NEW", "1".into()), ("GLIBCXX_FORCE_NEW", "1".into())];
    variables.push(("LD_LIBRARY_PATH", behind("LD_LIBRARY_PATH", DEBUG, ':')));
    let own = std::env::var("VALGRIND_LIB").ok();
    let mut folders = own.iter().map(String::as_str).chain(FOLDERS);
    let library = folders.find_map(|folder| {
        let path = Path::new(folder).join(LIBRARY);
        path.exists().then(|| path.display().to_string())
    });
    if let Some(library) = library {
        // Valgrind's library stands first.
        let all = match std::env::var(PRELOAD) {
            Ok(others) if !others.is_empty() => format!("{library}:{others}"),
            _ => library,
        };
        variables.push((PRELOAD, all));
    }
    variables
}
