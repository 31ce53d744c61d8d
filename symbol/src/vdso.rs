//! The bytes of the vdso, the code that the kernel maps into every process. It has no file, but
//! this process has the same copy.
//!
//! They are read through `/proc/self/mem`, which needs no unsafe code.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The vdso's bytes; `None` if the kernel maps none.
pub(crate) fn bytes() -> Option<Vec<u8>> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let maps = String::from_utf8_lossy(&maps);
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut bytes = vec![0; usize::try_from(end - start).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}
