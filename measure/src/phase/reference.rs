//! The slow twin: tries every cut, and adds its costs up as they are defined.

/// What a cut into pieces with these starts costs.
pub fn cost(series: &[Vec<f64>], values: usize, penalty: f64, starts: &[usize]) -> f64 {
    let ends = starts.iter().skip(1).copied().chain([values]);
    starts.iter().zip(ends).map(|(start, end)| penalty + deviations(series, *start, end)).sum()
}

/// Squared distances from the mean in one piece, over all series.
fn deviations(series: &[Vec<f64>], from: usize, to: usize) -> f64 {
    let of = |one: &Vec<f64>| {
        let mean = one[from..to].iter().sum::<f64>() / (to - from) as f64;
        one[from..to].iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    series.iter().map(of).sum()
}

/// The least cost of all cuts into pieces of at least `least` values, and a cut that has it. Takes
/// `2^values` steps.
pub fn segment(series: &[Vec<f64>], values: usize, penalty: f64, least: usize) -> (f64, Vec<usize>) {
    let mut cheapest = (cost(series, values, penalty, &[0]), vec![0]);
    for chosen in 0..1_u32 << values.saturating_sub(1) {
        let starts: Vec<usize> =
            (0..values).filter(|place| *place == 0 || chosen >> (place - 1) & 1 == 1).collect();
        let ends = starts.iter().skip(1).copied().chain([values]);
        if starts.iter().zip(ends).any(|(start, end)| end - start < least) {
            continue;
        }
        let cost = cost(series, values, penalty, &starts);
        if cost < cheapest.0 {
            cheapest = (cost, starts);
        }
    }
    cheapest
}
