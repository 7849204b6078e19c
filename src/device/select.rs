//! Which devices there are, and which of them the user means.

use std::collections::BTreeMap;

use super::cuda::{self, CudaDevice, Presence};
use super::host::HostDevice;
use super::{Device, DeviceError};

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Nothing: every CUDA device, or the host where there is no NVIDIA driver at all.
    Default,
    /// Every CUDA device.
    All,
    /// The memory of this machine.
    Host,
    /// The CUDA device with this index.
    Index(u32),
    /// The CUDA device with this UUID, or a beginning of it that no other has.
    Uuid(String),
}

impl std::str::FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "all" => Ok(Self::All),
            "host" => Ok(Self::Host),
            _ if lower.starts_with("gpu-") || lower.starts_with("mig-") => Ok(Self::Uuid(text.to_owned())),
            _ => text.parse().map(Self::Index).map_err(|_| {
                let nearest = ["all", "host"].into_iter().max_by(|a, b| strsim::jaro(&lower, a).total_cmp(&strsim::jaro(&lower, b)));
                let hint = nearest
                    .filter(|name| strsim::jaro(&lower, name) > 0.6)
                    .map(|name| format!(" (did you mean '{name}'?)"))
                    .unwrap_or_default();
                format!("'{text}' is no device{hint}; give an index such as 0, a UUID such as GPU-1b2c..., 'all' or 'host'")
            }),
        }
    }
}

/// A device to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// The CUDA device with this index.
    Cuda(u32),
    /// The memory of this machine.
    Host,
}

impl std::fmt::Display for Selected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cuda(index) => write!(f, "CUDA device {index}"),
            Self::Host => f.write_str("host"),
        }
    }
}

/// Turns a wish into devices, and says in words why, where that is not plain.
///
/// # Errors
/// When the wish names no device that is here, or CUDA is asked for and not usable.
/// A driver that is there but fails is always an error, never a reason to take the host.
pub fn list(wish: &Selector) -> Result<(Vec<Selected>, Option<String>), DeviceError> {
    if *wish == Selector::Host {
        return Ok((vec![Selected::Host], None));
    }
    let count = match cuda::presence()? {
        Presence::Working { devices } => devices,
        Presence::Absent(why) if *wish == Selector::Default => {
            return Ok((vec![Selected::Host], Some(format!("{why}: measuring the RAM of this machine, not a GPU"))));
        }
        Presence::Absent(why) => {
            return Err(DeviceError::Unusable(format!(
                "{why}; install the driver, or use '--device host' to measure the RAM of this machine"
            )));
        }
    };
    let every = (0..count).map(Selected::Cuda).collect();
    match wish {
        Selector::Default | Selector::All | Selector::Host => Ok((every, None)),
        Selector::Index(index) if *index < count => Ok((vec![Selected::Cuda(*index)], None)),
        Selector::Index(index) => {
            let named = |i| cuda::summary(i).map_or(i.to_string(), |device| format!("{i} ({})", device.name));
            let here: Vec<String> = (0..count).map(named).collect();
            Err(DeviceError::NotFound(format!("there is no CUDA device {index}; those here are {}", here.join(", "))))
        }
        Selector::Uuid(wanted) => by_uuid(wanted, count).map(|found| (vec![found], None)),
    }
}

/// Turns several wishes into devices, in their order; none at all is that for the default. A device
/// that two of them mean is there twice.
///
/// # Errors
/// As [`list`].
pub fn list_all(wishes: &[Selector]) -> Result<(Vec<Selected>, Option<String>), DeviceError> {
    let [first, others @ ..] = wishes else { return list(&Selector::Default) };
    let (mut selected, why) = list(first)?;
    for wish in others {
        selected.extend(list(wish)?.0);
    }
    Ok((selected, why))
}

fn by_uuid(wanted: &str, count: u32) -> Result<Selected, DeviceError> {
    // A device that does not answer keeps nobody from another, but it may be the one that is meant.
    let mut uuids = BTreeMap::new();
    let mut silent = None;
    for index in 0..count {
        match cuda::summary(index) {
            Ok(device) => {
                uuids.insert(index, device.uuid);
            }
            Err(error) => silent = Some(error),
        }
    }
    let lower = wanted.to_ascii_lowercase();
    let some_id = lower.len() > "gpu-".len();
    let matching: Vec<u32> =
        uuids.iter().filter(|(_, uuid)| some_id && uuid.to_ascii_lowercase().starts_with(&lower)).map(|(&i, _)| i).collect();
    match matching[..] {
        [index] => Ok(Selected::Cuda(index)),
        [] => Err(silent.unwrap_or_else(|| {
            let here: Vec<&str> = uuids.values().map(String::as_str).collect();
            DeviceError::NotFound(format!("no CUDA device has the UUID '{wanted}'; those here are {}", here.join(", ")))
        })),
        _ => Err(DeviceError::NotFound(format!("'{wanted}' begins the UUIDs of {} devices; write more of it", matching.len()))),
    }
}

/// Opens a device.
///
/// # Errors
/// When it cannot be used.
pub fn open(selected: Selected) -> Result<Box<dyn Device>, DeviceError> {
    Ok(match selected {
        Selected::Cuda(index) => Box::new(CudaDevice::open(index)?),
        Selected::Host => Box::new(HostDevice::open()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_an_index_a_uuid_all_or_host() {
        assert_eq!("0".parse(), Ok(Selector::Index(0)));
        assert_eq!("Host".parse(), Ok(Selector::Host));
        assert_eq!("all".parse(), Ok(Selector::All));
        assert!(matches!("GPU-1234".parse(), Ok(Selector::Uuid(_))));
        assert!(matches!("MIG-1234".parse(), Ok(Selector::Uuid(_))));
    }

    #[test]
    fn a_mistyped_device_gets_the_nearest_name() {
        let error = "hots".parse::<Selector>().unwrap_err();
        assert!(error.contains("did you mean 'host'?"), "{error}");
        assert!("-1".parse::<Selector>().is_err());
    }

    #[test]
    fn the_host_needs_no_driver() {
        assert_eq!(list(&Selector::Host), Ok((vec![Selected::Host], None)));
    }

    #[test]
    fn a_device_that_is_wished_for_twice_is_there_twice() {
        let twice = [Selector::Host, Selector::Host];
        assert_eq!(list_all(&twice), Ok((vec![Selected::Host, Selected::Host], None)));
    }
}
