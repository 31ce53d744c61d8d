//! NumPy on this library by preload, where Debian's NumPy is, whose BLAS is a shared library.

use std::path::PathBuf;
use std::process::Command;

/// The shared library of this build.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.with_file_name("liblightfoot_blas.so")
}

/// Products, systems and factorisations of all types, held against sums without a BLAS.
const PROGRAM: &str = r#"
import numpy as np
random = np.random.default_rng(1)
for kind in (np.float32, np.float64, np.complex64, np.complex128):
    eps = np.finfo(kind).eps
    def matrix(rows, cols):
        values = random.standard_normal((rows, cols))
        if np.issubdtype(kind, np.complexfloating):
            values = values + 1j * random.standard_normal((rows, cols))
        return values.astype(kind)
    def near(got, want, factor):
        assert np.abs(got - want).max() < factor * eps, (kind, got.shape, np.abs(got - want).max() / eps)
    for n in (1, 3, 17, 64, 130):
        a, b = matrix(n, n + 3), matrix(n + 3, n)
        near(a @ b, np.einsum('ij,jk->ik', a, b), 50 * n)
        near(a.T @ b.T, np.einsum('ji,kj->ik', a, b), 50 * n)
        near(a @ a.T, np.einsum('ij,kj->ik', a, a), 50 * n)
        near(a.T.conj() @ a, np.einsum('ji,jk->ik', a.conj(), a), 50 * n)
        square, right = matrix(n, n) + n * np.eye(n, dtype=kind), matrix(n, 2)
        near(square @ np.linalg.solve(square, right), right, 200 * n)
        near(square @ np.linalg.inv(square), np.eye(n), 500 * n)
        definite = square @ square.conj().T
        factor = np.linalg.cholesky(definite)
        near(factor @ factor.conj().T, definite, 1000 * n * n)
        q, r = np.linalg.qr(b, mode='complete')
        near(q @ r, b, 50 * n)
        near(q.conj().T @ q, np.eye(n + 3), 50 * n)
print("agrees")
"#;

#[test]
fn numpy_computes_with_it() {
    let python = ["/usr/bin/python3", "python3"].into_iter().find(|python| {
        let found = Command::new(python).args(["-c", "import numpy.linalg"]).output();
        found.is_ok_and(|output| output.status.success())
    });
    let Some(python) = python else {
        eprintln!("skipped: no Python with NumPy (Debian: python3-numpy)");
        return;
    };
    let run = |preload: bool, debug: bool| {
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]);
        if preload {
            command.env("LD_PRELOAD", library());
        }
        if debug {
            command.env("LD_DEBUG", "bindings");
        }
        command.output().expect("Python runs")
    };
    let output = run(true, true);
    let (text, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && text.contains("agrees"),
        "{text}{}",
        &log[log.len().saturating_sub(2000)..]
    );
    // NumPy may come with a BLAS inside, whose calls nobody can take over.
    if !log.contains("`cblas_dgemm'") {
        eprintln!("skipped: this NumPy has a BLAS of its own (Debian's has none)");
        return;
    }
    for symbol in ["cblas_dgemm", "cblas_zsyrk", "dgesv_", "zpotrf_", "dgeqrf_", "zungqr_"] {
        let ours =
            |line: &str| line.contains("liblightfoot_blas.so") && line.contains(&format!("`{symbol}'"));
        assert!(log.lines().any(ours), "{symbol} is not ours");
    }
    assert!(run(false, false).status.success(), "the program is right with the system's library too");
}
