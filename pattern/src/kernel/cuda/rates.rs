//! Measures the speed of the card's copies, which limits that of searches.

use super::device::Cuda;
use super::driver::{DeviceMemory, Event, HostMemory};
use super::error::CudaError;
use super::work::Work;

/// Copies of each kind, of which the fastest counts.
const ROUNDS: usize = 5;

/// Gigabytes per second by the card's own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRates {
    /// From pinned memory of the host to the card.
    pub from_pinned: f64,
    /// Within the card, bytes read plus bytes written.
    pub within: f64,
}

impl Cuda {
    /// Measures copies of this many bytes.
    ///
    /// # Errors
    /// The driver's, or there is not so much memory.
    pub fn copy_rates(&self, bytes: usize) -> Result<CopyRates, CudaError> {
        let (from, to) = (DeviceMemory::new(&self.driver, bytes)?, DeviceMemory::new(&self.driver, bytes)?);
        let pinned = HostMemory::new(&self.driver, bytes)?;
        let (start, end) = (Event::new(&self.driver)?, Event::new(&self.driver)?);
        let work = self.work();
        let Work { copies, .. } = &*work;
        let fastest = |copy: &dyn Fn() -> Result<(), CudaError>| -> Result<f64, CudaError> {
            let mut seconds = f64::INFINITY;
            for _ in 0..ROUNDS {
                copies.record(&start)?;
                let copied = copy();
                copies.record(&end)?;
                copies.finish()?;
                copied?;
                seconds = seconds.min(end.seconds_since(&start)?);
            }
            Ok(bytes as f64 / seconds / 1e9)
        };
        let from_pinned = fastest(&|| copies.send(&from, 0, &pinned, 0..bytes))?;
        let within = 2.0 * fastest(&|| copies.duplicate(&to, &from, bytes))?;
        Ok(CopyRates { from_pinned, within })
    }
}
