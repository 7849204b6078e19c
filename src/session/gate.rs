//! Where the devices of a case wait for each other, so that all start at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// This many have not arrived.
    Missing(usize),
    /// All have arrived.
    Open,
    /// One left before it had arrived, or before all others had: it never opens.
    Closed,
}

struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// The place of one device at the gate. To drop it is to leave: as long as not all have arrived,
/// that closes the gate, so nobody waits for one that does not come.
pub(super) struct Place(Arc<Gate>);

/// What one who waits is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// All are here: start.
    Open,
    /// Some other left: there is no start.
    Closed,
    /// Neither yet.
    Waiting,
}

/// The places of a gate that opens when `count` have arrived.
pub(super) fn gate(count: usize) -> Vec<Place> {
    let gate = Arc::new(Gate { state: Mutex::new(State::Missing(count)), changed: Condvar::new() });
    (0..count).map(|_| Place(Arc::clone(&gate))).collect()
}

impl Place {
    /// Says that this device is ready.
    pub fn arrive(&self) {
        self.change(|missing| if missing == 1 { State::Open } else { State::Missing(missing - 1) });
    }

    /// Waits for the others.
    pub fn wait(&self, within: Duration) -> Passage {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State| matches!(state, State::Missing(_));
        let waited = self.0.changed.wait_timeout_while(state, within, waiting);
        match *waited.unwrap_or_else(PoisonError::into_inner).0 {
            State::Open => Passage::Open,
            State::Closed => Passage::Closed,
            State::Missing(_) => Passage::Waiting,
        }
    }

    /// Changes a gate that is neither open nor closed.
    fn change(&self, next: impl FnOnce(usize) -> State) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Missing(missing) = *state {
            *state = next(missing);
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.change(|_| State::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_gate_opens_when_all_have_arrived_and_stays_open_when_some_leave_then() {
        let mut places = gate(2);
        places[0].arrive();
        assert_eq!(places[0].wait(Duration::ZERO), Passage::Waiting);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| places[0].wait(LONG));
            places[1].arrive();
            assert_eq!(waiting.join().unwrap(), Passage::Open);
        });
        places.truncate(1);
        assert_eq!(places[0].wait(LONG), Passage::Open);
    }

    #[test]
    fn one_that_leaves_before_all_have_arrived_blocks_nobody() {
        let mut places = gate(3);
        let leaving = places.pop();
        places[0].arrive();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| places[0].wait(LONG));
            drop(leaving);
            assert_eq!(waiting.join().unwrap(), Passage::Closed);
        });
        // Whoever comes later finds it closed.
        places[1].arrive();
        assert_eq!(places[1].wait(LONG), Passage::Closed);
    }

    #[test]
    fn a_thread_that_panics_leaves() {
        let mut places = gate(2);
        let place = places.pop();
        let panicked = std::thread::spawn(move || {
            let _place = place;
            std::panic::resume_unwind(Box::new("as the test wants"));
        });
        assert!(panicked.join().is_err());
        assert_eq!(places[0].wait(LONG), Passage::Closed);
    }
}
