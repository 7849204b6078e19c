//! What parent and child tell each other: one JSON document a line.
//!
//! The parent writes [`Request`]s to the child's standard input and keeps it open as long as it
//! lives; the child writes [`Answer`]s to its standard output.

use serde::{Deserialize, Serialize};

use super::{Forms, Soaks};
use crate::device::DeviceError;
use crate::measure::{Settings, Window};
use crate::pattern::{DeviceKind, Facts};
use crate::record::{self, Measurement, Peaks, Status};

/// What a child is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// First line: open this device and say who it is.
    Probe(String),
    /// First line: measure these cases.
    Measure(Task),
    /// First line: measure these cases while other devices are at work, each from a common start.
    Together(Task),
    /// A later line, after [`Answer::Ready`]: all are ready, so start.
    Go,
    /// Any later line: let the sample in flight end, keep nothing of its case, and end.
    Stop,
}

/// Cases to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The device, as `--device` takes it: the UUID where there is one, because indices move
    /// when a card falls off its bus between two children.
    pub device: String,
    /// What the cases were planned with; each child plans alike, whatever memory is free by then.
    #[serde(with = "FactsForm")]
    pub facts: Facts,
    /// What holds for all of them.
    pub settings: Settings,
    /// What the rows' fractions refer to, as far as it is known.
    pub peaks: Peaks,
    /// The best forms, as far as they are known.
    pub forms: Forms,
    /// At which of the cases the device is to work for long.
    pub soaks: Soaks,
    /// The ids, in order.
    pub ids: Vec<String>,
}

/// What a child says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The device could not be opened.
    Refused(DeviceError),
    /// Who the device is, and what cases are planned with.
    Probed {
        /// For the document.
        identity: Box<record::Device>,
        /// For the patterns.
        #[serde(with = "FactsForm")]
        facts: Facts,
    },
    /// The case with this id begins.
    Started(String),
    /// It was measured, and so many seconds of its soak are over.
    Soaked(f64),
    /// It has ended. After a row with status `error` the child ends too.
    Finished {
        /// Its row.
        row: Box<Measurement>,
        /// Whether the device was lost in it.
        device_lost: bool,
    },
    /// The case that began is ready to be sampled: the child waits for [`Request::Go`].
    Ready,
    /// It has ended, and this is what it gave beside the others. After an error the child ends too.
    Together(Result<Box<Window>, DeviceError>),
}

impl Answer {
    /// Whether a case failed in such a way that the child ends.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::Finished { row, .. } => row.status == Status::Error,
            Self::Together(outcome) => outcome.is_err(),
            Self::Refused(_) | Self::Probed { .. } | Self::Started(_) | Self::Soaked(_) | Self::Ready => false,
        }
    }
}

/// The form of [`Facts`] on the way; patterns themselves never leave their process.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Facts")]
struct FactsForm {
    kind: DeviceKind,
    cache_bytes: Option<u64>,
    free_bytes: u64,
    main_free_bytes: u64,
    units: u32,
    threads_per_unit: u32,
    capability: Option<(u32, u32)>,
    launch_limited: bool,
    peak_bytes_per_clock: Option<u32>,
}

/// A message as one line.
pub(super) fn line(message: &impl Serialize) -> std::io::Result<String> {
    Ok(serde_json::to_string(message)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200;
    use crate::device::Verification;
    use crate::pattern::{CacheState, Data, Profile};

    fn round_trip<T: Serialize + for<'de> Deserialize<'de> + PartialEq + std::fmt::Debug>(message: T) {
        let line = line(&message).unwrap();
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{line}");
        assert_eq!(serde_json::from_str::<T>(&line).unwrap(), message);
    }

    #[test]
    fn every_request_is_one_line_and_comes_back_as_it_was() {
        round_trip(Request::Probe("host".into()));
        round_trip(Request::Stop);
        round_trip(Request::Go);
        for facts in [Facts::H200, Facts::HOST] {
            let ids = vec!["stream/copy/f32@4096".into(), "stride/read/4".into()];
            let task = Task {
                device: "GPU-1".into(),
                facts,
                settings: Settings { profile: Profile::Full, data: Data::Zero, cache: CacheState::Cold },
                peaks: h200().peaks,
                forms: Forms::default(),
                soaks: Soaks { seconds: 600, ids: vec!["stride/read/4".into()] },
                ids,
            };
            round_trip(Request::Measure(task.clone()));
            round_trip(Request::Together(task));
        }
    }

    #[test]
    fn every_answer_is_one_line_and_comes_back_as_it_was() {
        let run = h200();
        for error in [DeviceError::Unusable("a\nb".into()), DeviceError::NotFound("x".into()), DeviceError::Lost("700".into())] {
            round_trip(Answer::Refused(error.clone()));
            round_trip(Answer::Together(Err(error)));
        }
        round_trip(Answer::Ready);
        round_trip(Answer::Soaked(599.75));
        let time = run.measurements[0].time_ns.clone().unwrap();
        let verification = Verification { mismatches: 2, first_bad: Some(3), stray: 1 };
        round_trip(Answer::Together(Ok(Box::new(Window { time, verification, began_unix_ns: 1 << 60, ended_unix_ns: u64::MAX }))));
        round_trip(Answer::Probed { identity: Box::new(run.device), facts: Facts::H200 });
        round_trip(Answer::Started("stream/copy/f32".into()));
        for row in run.measurements {
            round_trip(Answer::Finished { row: Box::new(row), device_lost: false });
        }
        let row = Measurement::without_figures("stride/read/4", "stride", Status::Error, "gone".into());
        round_trip(Answer::Finished { row: Box::new(row), device_lost: true });
    }
}
