//! A thread that reads a device's sensors while it works.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::device::{Reading, Sensors};

/// From the end of one reading to the start of the next. A shorter one shows nothing new: NVML's own
/// values are some 20 to 100 ms old, and each reading takes the driver's attention.
pub(super) const INTERVAL: Duration = Duration::from_millis(20);

/// How long a reading that is under way when sampling ends is waited for. Readings take a few
/// milliseconds; one that takes this long hangs, and is left to itself.
const GRACE: Duration = Duration::from_secs(1);

/// A reading and its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stamped {
    /// Since the poller was started, in seconds: when the reading was complete.
    pub at_s: f64,
    pub reading: Reading,
}

/// Reads sensors until it is ended or dropped.
pub(super) struct Poller {
    /// Nothing is ever sent through it: its end is the signal.
    stop: Sender<()>,
    readings: Receiver<Stamped>,
    thread: JoinHandle<Box<dyn Sensors>>,
}

impl Poller {
    /// Starts reading at once.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(sensors: Box<dyn Sensors>) -> Result<Self, String> {
        Self::every(INTERVAL, sensors)
    }

    /// Starts reading at once, with pauses of `interval`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn every(interval: Duration, mut sensors: Box<dyn Sensors>) -> Result<Self, String> {
        let ((stop, stopped), (sender, readings)) = (channel(), channel());
        let started = Instant::now();
        let poll = move || {
            loop {
                let reading = sensors.read();
                let stamped = Stamped { at_s: started.elapsed().as_secs_f64(), reading };
                if sender.send(stamped).is_err() || stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            // The end of the sender says that nobody waits for a sensor any more.
            drop(sender);
            sensors
        };
        let thread = thread::Builder::new().name("sensors".into()).spawn(poll);
        let thread = thread.map_err(|error| format!("no thread could be started to read the sensors: {error}"))?;
        Ok(Self { stop, readings, thread })
    }

    /// What was read since this was asked last.
    pub fn so_far(&self) -> Vec<Stamped> {
        self.readings.try_iter().collect()
    }

    /// Ends the reading and gives what was read, and the sensors.
    ///
    /// # Errors
    /// When a sensor does not answer: its thread is then left to itself, and dies with the program.
    pub fn end(self) -> Result<(Vec<Stamped>, Box<dyn Sensors>), String> {
        self.end_within(GRACE)
    }

    fn end_within(self, grace: Duration) -> Result<(Vec<Stamped>, Box<dyn Sensors>), String> {
        drop(self.stop);
        let mut readings = Vec::new();
        loop {
            match self.readings.recv_timeout(grace) {
                Ok(stamped) => readings.push(stamped),
                Err(RecvTimeoutError::Disconnected) => {
                    let sensors = self.thread.join().map_err(|_| "the sensors gave no reading: the thread that reads them panicked")?;
                    return Ok((readings, sensors));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("a sensor did not answer within {} ms after the samples", grace.as_millis()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells of each reading, waits for leave to give it, and tells of its own end.
    struct Scripted {
        begun: Sender<()>,
        leave: Receiver<()>,
    }

    impl Sensors for Scripted {
        fn read(&mut self) -> Reading {
            let _ = self.begun.send(());
            // No more leave is to come: then nothing holds a reading up.
            let _ = self.leave.recv();
            Reading::untold("scripted")
        }
    }

    fn scripted() -> (Box<Scripted>, Receiver<()>, Sender<()>) {
        let ((begun, begins), (give, leave)) = (channel(), channel());
        (Box::new(Scripted { begun, leave }), begins, give)
    }

    /// Longer than any test may take.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn readings_follow_each_other_until_the_end_and_carry_rising_times() {
        let (sensors, begins, leave) = scripted();
        let poller = Poller::every(Duration::ZERO, sensors).unwrap();
        for _ in 0..3 {
            begins.recv().unwrap();
            leave.send(()).unwrap();
        }
        begins.recv().unwrap();
        drop(leave);
        let (readings, sensors) = poller.end_within(LONG).unwrap();
        assert!(readings.len() >= 4 && readings.windows(2).all(|pair| pair[0].at_s <= pair[1].at_s));
        // The thread is gone and has left the sensors.
        drop(sensors);
        while begins.recv().is_ok() {}
    }

    #[test]
    fn the_end_is_not_held_up_by_the_interval() {
        let (sensors, begins, leave) = scripted();
        let poller = Poller::every(LONG * 60, sensors).unwrap();
        drop(leave);
        begins.recv().unwrap();
        assert_eq!(poller.end_within(LONG).unwrap().0.len(), 1);
    }

    #[test]
    fn a_sensor_that_hangs_is_left_behind_with_the_reason() {
        let (sensors, begins, leave) = scripted();
        let poller = Poller::every(Duration::ZERO, sensors).unwrap();
        begins.recv().unwrap();
        assert!(poller.end_within(Duration::from_millis(1)).err().unwrap().contains("did not answer"));
        drop(leave);
        while begins.recv().is_ok() {}
    }

    #[test]
    fn a_poller_that_is_dropped_ends_its_thread() {
        let (sensors, begins, leave) = scripted();
        drop(Poller::every(LONG, sensors).unwrap());
        drop(leave);
        while begins.recv().is_ok() {}
    }

    #[test]
    fn a_sensor_that_panics_leaves_a_reason_and_no_more() {
        struct Panics;
        impl Sensors for Panics {
            fn read(&mut self) -> Reading {
                std::panic::resume_unwind(Box::new("for this test"))
            }
        }
        let poller = Poller::every(Duration::ZERO, Box::new(Panics)).unwrap();
        assert!(poller.end_within(LONG).err().unwrap().contains("no reading"));
    }
}
