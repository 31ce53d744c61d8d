//! What a race of factorisations runs.

/// What is raced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// LU with partial pivoting.
    Lu,
    /// The lower Cholesky factor.
    Cholesky,
    /// QR by reflections.
    Qr,
    /// A triangular system with as many right-hand sides as rows.
    Solve,
    /// The lower triangle of `A·Aᵀ`.
    RankUpdate,
    /// A lower triangle times a square matrix.
    Multiply,
    /// A symmetric matrix, of which the lower triangle is given, times a square matrix.
    Symmetric,
    /// The inverse, by LU.
    Inverse,
}

impl Operation {
    /// All operations with their names on a command line.
    pub const ALL: &'static [(&'static str, Operation)] = &[
        ("lu", Operation::Lu),
        ("cholesky", Operation::Cholesky),
        ("qr", Operation::Qr),
        ("trsm", Operation::Solve),
        ("syrk", Operation::RankUpdate),
        ("trmm", Operation::Multiply),
        ("symm", Operation::Symmetric),
        ("inverse", Operation::Inverse),
    ];

    /// Flops of an n×n problem, by the usual count.
    pub fn flops(self, n: usize) -> f64 {
        let cube = (n as f64).powi(3);
        match self {
            Operation::Lu => cube * 2.0 / 3.0,
            Operation::Cholesky => cube / 3.0,
            Operation::Qr => cube * 4.0 / 3.0,
            Operation::Symmetric | Operation::Inverse => cube * 2.0,
            Operation::Solve | Operation::RankUpdate | Operation::Multiply => cube,
        }
    }
}
