//! Runs a future to its end on this thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{current, park, Thread};

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future until it is ready; the thread sleeps in between. A future that needs a runtime of
/// its own, as sockets of tokio do, is handed to that runtime inside of the benchmark.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_waits_is_polled_again() {
        let mut polled = 0;
        let future = std::future::poll_fn(|context| {
            polled += 1;
            context.waker().wake_by_ref();
            if polled < 3 {
                Poll::Pending
            } else {
                Poll::Ready(polled)
            }
        });
        assert_eq!(block_on(future), 3);
    }

    #[test]
    fn another_thread_may_wake() {
        let (sender, receiver) = std::sync::mpsc::channel::<Waker>();
        let other = std::thread::spawn(move || receiver.recv().unwrap().wake());
        let mut asked = false;
        let future = std::future::poll_fn(|context| match std::mem::replace(&mut asked, true) {
            true => Poll::Ready(()),
            false => {
                sender.send(context.waker().clone()).unwrap();
                Poll::Pending
            }
        });
        block_on(future);
        other.join().unwrap();
    }
}
