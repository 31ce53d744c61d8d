//! Times contestants in interleaved passes: medians, quartiles, shares of the peak that is sampled
//! beside each run, and paired ratios.

use std::time::{Duration, Instant};

/// A function to time; one call is one multiplication.
pub type Run = Box<dyn FnMut()>;

/// Seconds from which a run is long: filling the caches is then a thousandth of it.
const LONG_S: f64 = 0.5;

struct Contestant {
    name: String,
    run: Run,
    repeats: usize,
    /// One run takes [`LONG_S`] and the target.
    is_long: bool,
    seconds: Vec<f64>,
    shares: Vec<f64>,
}

/// Contestants and their times.
pub struct Contest {
    flops: f64,
    target_s: f64,
    peak: fn() -> f64,
    pause: Duration,
    contestants: Vec<Contestant>,
}

impl Contest {
    /// `flops` is the work of one run. Runs are repeated for about `target_s` seconds. `peak`
    /// samples the processor's peak in GFLOP/s.
    pub fn new(flops: f64, target_s: f64, peak: fn() -> f64) -> Contest {
        Contest { flops, target_s, peak, pause: Duration::ZERO, contestants: Vec::new() }
    }

    /// Waits before each contestant is measured: threads of the one before it may watch for work
    /// for a while, and take a processor from the next.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Contest {
        Contest { pause, ..self }
    }

    /// Adds a contestant.
    pub fn add(&mut self, name: String, run: Run) {
        self.contestants.push(Contestant {
            name,
            run,
            repeats: 1,
            is_long: false,
            seconds: Vec::new(),
            shares: Vec::new(),
        });
    }

    /// Runs the passes, each of which begins with another contestant.
    ///
    /// Before each measured run that is shorter than half a second comes one that is not measured.
    /// A longer run needs none, and the first of all is its first pass.
    pub fn run(&mut self, passes: usize) {
        let peak = self.peak;
        for contestant in &mut self.contestants {
            contestant.measure(self.flops, peak, |contestant| contestant.calibrate(self.target_s));
        }
        let count = self.contestants.len();
        for pass in 0..passes {
            for i in 0..count {
                let contestant = &mut self.contestants[(i + pass) % count];
                if contestant.seconds.len() < passes {
                    std::thread::sleep(self.pause);
                    contestant.measure(self.flops, peak, |contestant| Some(contestant.time()));
                }
            }
        }
    }

    /// The names, in the order of entry.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contestants.iter().map(|contestant| contestant.name.as_str())
    }

    /// Median seconds of a run.
    pub fn median_seconds(&self, contestant: usize) -> Option<f64> {
        self.contestants.get(contestant).map(|contestant| quantile(&contestant.seconds, 0.5))
    }

    /// First quartile, median and third quartile of a contestant's GFLOP/s.
    pub fn gflops(&self, contestant: usize) -> [f64; 3] {
        let rates: Vec<_> =
            self.contestants[contestant].seconds.iter().map(|time| self.flops / time / 1e9).collect();
        [0.25, 0.5, 0.75].map(|share| quantile(&rates, share))
    }

    /// The median share of the peak, which is sampled beside each run.
    pub fn share_of_peak(&self, contestant: usize) -> f64 {
        quantile(&self.contestants[contestant].shares, 0.5)
    }

    /// The median over the passes of the time of `other` divided by that of `base`: above 1 if
    /// `base` is faster.
    pub fn ratio(&self, base: usize, other: usize) -> f64 {
        let pairs = self.contestants[base].seconds.iter().zip(&self.contestants[other].seconds);
        quantile(&pairs.map(|(base, other)| other / base).collect::<Vec<_>>(), 0.5)
    }
}

impl std::fmt::Debug for Contest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Contestant {
    /// Adds the seconds of a multiplication that `run` tells, and their share of the peak.
    fn measure(&mut self, flops: f64, peak: fn() -> f64, run: impl FnOnce(&mut Self) -> Option<f64>) {
        let before = peak();
        let Some(seconds) = run(self) else { return };
        let peak = f64::midpoint(before, peak());
        self.seconds.push(seconds);
        self.shares.push(flops / seconds / 1e9 / peak);
    }

    /// Finds how often to repeat a run to fill `target_s`; gives the seconds of a run that is long
    /// by itself.
    fn calibrate(&mut self, target_s: f64) -> Option<f64> {
        let start = Instant::now();
        (self.run)();
        let seconds = start.elapsed().as_secs_f64();
        self.is_long = seconds >= LONG_S.max(target_s);
        if self.is_long {
            return Some(seconds);
        }
        loop {
            let seconds = self.time() * self.repeats as f64;
            if seconds >= target_s {
                return None;
            }
            let factor = (target_s / seconds.max(1e-9) * 1.1).clamp(1.3, 100.0);
            self.repeats = (self.repeats as f64 * factor).ceil() as usize;
        }
    }

    /// Seconds per multiplication.
    fn time(&mut self) -> f64 {
        // Other contestants have used the caches since the last run. A long run fills them again in
        // a small part of its time, so it needs no run before it.
        if !self.is_long {
            (self.run)();
        }
        let start = Instant::now();
        for _ in 0..self.repeats {
            (self.run)();
        }
        start.elapsed().as_secs_f64() / self.repeats as f64
    }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// How often a run of this length is called in three passes, and how many figures it has.
    fn calls(length: Duration) -> (usize, usize) {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        let run = move || {
            counted.set(counted.get() + 1);
            std::thread::sleep(length);
        };
        let mut contest = Contest::new(1.0, 0.0, || 1.0);
        contest.add("one".into(), Box::new(run));
        contest.run(3);
        (calls.get(), contest.contestants[0].seconds.len())
    }

    #[test]
    fn a_long_run_is_measured_each_time_and_a_short_one_is_warmed() {
        // Three runs to calibrate, and two in each pass.
        assert_eq!(calls(Duration::ZERO), (9, 3));
        assert_eq!(calls(Duration::from_secs_f64(LONG_S)), (3, 3));
    }
}
