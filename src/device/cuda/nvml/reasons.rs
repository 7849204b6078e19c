//! Why the driver holds clocks back, by the names of NVML's header.

/// Bits of `nvmlDeviceGetCurrentClocksEventReasons`, lowest first, as `nvml.h` names them after
/// `nvmlClocksEventReason` (three of them still after the older `nvmlClocksThrottleReason`).
const NAMES: [&str; 9] = [
    "GpuIdle",
    "ApplicationsClocksSetting",
    "SwPowerCap",
    "HwSlowdown",
    "SyncBoost",
    "SwThermalSlowdown",
    "HwThermalSlowdown",
    "HwPowerBrakeSlowdown",
    "DisplayClockSetting",
];

/// The names of the bits that are set; of a bit that is newer than this program, its value.
pub(super) fn names(bits: u64) -> Vec<String> {
    (0..u64::BITS)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| NAMES.get(bit as usize).map_or_else(|| format!("{:#x}", 1u64 << bit), |name| (*name).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvml_wrapper::bitmasks::device::ThrottleReasons as Bits;

    #[test]
    fn each_bit_has_the_name_of_the_header() {
        for (bit, name) in [
            (Bits::GPU_IDLE, "GpuIdle"),
            (Bits::APPLICATIONS_CLOCKS_SETTING, "ApplicationsClocksSetting"),
            (Bits::SW_POWER_CAP, "SwPowerCap"),
            (Bits::HW_SLOWDOWN, "HwSlowdown"),
            (Bits::SYNC_BOOST, "SyncBoost"),
            (Bits::SW_THERMAL_SLOWDOWN, "SwThermalSlowdown"),
            (Bits::HW_THERMAL_SLOWDOWN, "HwThermalSlowdown"),
            (Bits::HW_POWER_BRAKE_SLOWDOWN, "HwPowerBrakeSlowdown"),
            (Bits::DISPLAY_CLOCK_SETTING, "DisplayClockSetting"),
        ] {
            assert_eq!(names(bit.bits()), [name]);
        }
        assert!(names(0).is_empty());
    }

    #[test]
    fn a_bit_that_is_newer_than_this_program_is_not_lost() {
        assert_eq!(names(1 << 40 | 4), ["SwPowerCap", "0x10000000000"]);
    }
}
