//! Lists the places where the driver and the compiler may be installed.
//!
//! The driver is in the folders of the system's loader. The compiler may be named in
//! `LIGHTFOOT_NVRTC`, be in the loader's folders, in those of the toolkit, or among Python's
//! packages: those of the system, of the user, of the active environment, and of the `python3` that
//! the shell would run.

use std::path::{Path, PathBuf};

/// Names the compiler's library.
pub(super) const COMPILER_VARIABLE: &str = "LIGHTFOOT_NVRTC";

const COMPILERS: &[&str] = &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// Candidates for the driver, the likeliest first.
pub(super) fn drivers() -> Vec<PathBuf> {
    vec![PathBuf::from("libcuda.so.1"), PathBuf::from("libcuda.so")]
}

/// Candidates for the compiler, the likeliest first; the variable stands alone where it is set.
pub(super) fn compilers() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(COMPILER_VARIABLE) {
        return vec![PathBuf::from(named)];
    }
    let mut all: Vec<PathBuf> = COMPILERS.iter().map(PathBuf::from).collect();
    let mut folders = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(std::env::var_os(variable).map(|folder| Path::new(&folder).join("lib64")));
    }
    folders.push(PathBuf::from("/usr/local/cuda/lib64"));
    folders.push(PathBuf::from("/opt/cuda/lib64"));
    for root in python_roots() {
        for python in inside(&root, "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                folders.extend(["cu13", "cuda_nvrtc"].map(|package| nvidia.join(package).join("lib")));
            }
        }
        folders.extend(
            ["cu13", "cuda_nvrtc"]
                .map(|package| root.join("python3/dist-packages/nvidia").join(package).join("lib")),
        );
    }
    for folder in folders {
        all.extend(COMPILERS.iter().map(|name| folder.join(name)).filter(|path| path.exists()));
    }
    all
}

/// Folders that hold folders of Python versions.
fn python_roots() -> Vec<PathBuf> {
    let environment = std::env::var_os("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("lib"));
    let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/lib"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs = std::env::split_paths(&path).filter(|folder| folder.join("python3").exists());
    let run = runs.filter_map(|folder| Some(folder.parent()?.join("lib"))).take(1);
    let system = ["/usr/local/lib", "/usr/lib"].map(PathBuf::from);
    environment.into_iter().chain(own).chain(run).chain(system).collect()
}

/// The folders in `root` whose names begin so, in order.
fn inside(root: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    all.sort_unstable();
    all
}
