//! Quantiles of Student's distribution for one-sided tests at 5 %.

/// The one-sided 95 % quantile of Student's distribution, by degrees of freedom.
pub(super) fn quantile(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
        1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701,
        1.699, 1.697,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => T[freedom - 1],
        _ => 1.697,
    }
}
