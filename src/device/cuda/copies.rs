//! Copies by the engines of the card: the first in the device's own stream, each other one in a stream and by a
//! thread of its own, because a copy from or to pageable memory holds the thread that asks for it.

use std::ffi::c_void;
use std::sync::Barrier;

use cust::context::{Context, CurrentContext};
use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};

use super::error::{at_work, raw};
use crate::device::DeviceError;

/// A call of the driver that copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    DeviceToDevice,
    HostToDevice,
    DeviceToHost,
}

/// One copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    call: Call,
    from: u64,
    to: u64,
    bytes: usize,
}

impl Lane {
    /// From one address to another, each with whether it is the card's. None where neither is: that is no copy of its engines.
    pub fn new((from, from_card): (u64, bool), (to, to_card): (u64, bool), bytes: usize) -> Option<Self> {
        let call = match (from_card, to_card) {
            (true, true) => Call::DeviceToDevice,
            (false, true) => Call::HostToDevice,
            (true, false) => Call::DeviceToHost,
            (false, false) => return None,
        };
        Some(Self { call, from, to, bytes })
    }

    /// The driver's name of the call.
    fn name(&self) -> &'static str {
        match self.call {
            Call::DeviceToDevice => "cuMemcpyDtoDAsync",
            Call::HostToDevice => "cuMemcpyHtoDAsync",
            Call::DeviceToHost => "cuMemcpyDtoHAsync",
        }
    }

    /// Asks for the copy so many times.
    fn enqueue(&self, executions: u32, stream: &Stream) -> Result<(), DeviceError> {
        let Self { call, from, to, bytes } = *self;
        let stream = stream.as_inner();
        for _ in 0..executions {
            // SAFETY: both buffers hold `bytes` bytes, do not overlap, and live until the streams have ended their work.
            let result = unsafe {
                match call {
                    Call::DeviceToDevice => cust::sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream),
                    Call::HostToDevice => cust::sys::cuMemcpyHtoDAsync_v2(to, from as *const c_void, bytes, stream),
                    Call::DeviceToHost => cust::sys::cuMemcpyDtoHAsync_v2(to as *mut c_void, from, bytes, stream),
                }
            };
            raw("the copy engine", result)?;
        }
        Ok(())
    }
}

/// A copy beside the first.
struct Side {
    lane: Lane,
    stream: Stream,
}

/// The copies of a plan.
pub(super) struct Copies {
    first: Lane,
    sides: Vec<Side>,
}

impl Copies {
    /// # Errors
    /// When the driver gives no streams, or there is no copy.
    pub fn new(lanes: &[Lane]) -> Result<Self, DeviceError> {
        let (&first, rest) = lanes.split_first().ok_or_else(|| DeviceError::Failed("the plan copies nothing".into()))?;
        let side =
            |&lane: &Lane| Ok(Side { lane, stream: Stream::new(StreamFlags::NON_BLOCKING, None).map_err(at_work("creating a stream"))? });
        Ok(Self { first, sides: rest.iter().map(side).collect::<Result<_, _>>()? })
    }

    /// The calls of the driver.
    pub fn names(&self) -> Vec<&'static str> {
        [&self.first].into_iter().chain(self.sides.iter().map(|side| &side.lane)).map(Lane::name).collect()
    }

    /// Asks for each copy so many times, after `start`, which is recorded in `stream`; what comes next in `stream`
    /// comes after all of them.
    pub fn enqueue(&self, executions: u32, context: &Context, stream: &Stream, start: &Event) -> Result<(), DeviceError> {
        // Threads start before the clock does.
        let begin = Barrier::new(1 + self.sides.len());
        std::thread::scope(|scope| {
            let by_thread = |side| {
                let begin = &begin;
                scope.spawn(move || enqueue_side(side, executions, context, begin))
            };
            let threads: Vec<_> = self.sides.iter().map(by_thread).collect();
            let started = self.start(stream, start);
            // Whatever came of it: threads wait for it.
            begin.wait();
            started?;
            self.first.enqueue(executions, stream)?;
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(DeviceError::Failed("a thread that asks for copies ended early".into())))
            })
        })?;
        self.sides.iter().try_for_each(|side| order(&side.stream, stream))
    }

    /// Records the start, after which the other streams begin.
    fn start(&self, stream: &Stream, start: &Event) -> Result<(), DeviceError> {
        start.record(stream).map_err(at_work("recording an event"))?;
        self.sides.iter().try_for_each(|side| order(stream, &side.stream))
    }

    /// Waits until no copy is under way. A failure shows in the next call.
    pub fn end(&self) {
        self.sides.iter().for_each(|side| _ = side.stream.synchronize());
    }
}

/// What the thread of a copy does.
fn enqueue_side(side: &Side, executions: u32, context: &Context, begin: &Barrier) -> Result<(), DeviceError> {
    let current = CurrentContext::set_current(context).map_err(at_work("making the context current"));
    begin.wait();
    current?;
    side.lane.enqueue(executions, &side.stream)
}

/// Has what comes next in the stream `later` wait for what `earlier` was asked for so far.
fn order(earlier: &Stream, later: &Stream) -> Result<(), DeviceError> {
    let event = Event::new(EventFlags::DISABLE_TIMING).map_err(at_work("creating an event"))?;
    event.record(earlier).map_err(at_work("recording an event"))?;
    later.wait_event(event, StreamWaitEventFlags::DEFAULT).map_err(at_work("waiting for an event"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_called_by_the_sides_that_are_the_cards() {
        let name = |from_card, to_card| Lane::new((0, from_card), (0, to_card), 4).map(|lane| lane.name());
        assert_eq!(name(true, true), Some("cuMemcpyDtoDAsync"));
        assert_eq!(name(false, true), Some("cuMemcpyHtoDAsync"));
        assert_eq!(name(true, false), Some("cuMemcpyDtoHAsync"));
        assert_eq!(name(false, false), None);
    }

    #[test]
    fn a_plan_without_a_copy_is_refused() {
        assert!(Copies::new(&[]).is_err());
    }
}
