//! A card's sensors through NVML.

use std::sync::Arc;

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::{Bits, NvmlError};
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_POWER_INSTANT};
use nvml_wrapper::{Device, enum_wrappers::device::PerformanceState};

use super::{Card, reasons, says};
use crate::device::{Reading, Sensors};
use crate::record::PowerSource;

/// What changes seldom and is slow to ask, as lists of processes are, is asked in every tenth reading.
const SLOW_EVERY: u32 = 10;

/// One card, or the card that a slice is of.
pub(crate) struct NvmlSensors {
    card: Card,
    slice: bool,
    readings: u32,
    slow: Option<Slow>,
    _lent: Arc<()>,
}

/// What is asked seldom.
#[derive(Clone)]
struct Slow {
    pcie_generation: Result<u32, String>,
    pcie_width: Result<u32, String>,
    other_processes: Result<u32, String>,
}

impl Slow {
    fn ask(card: &Card) -> Self {
        Self {
            pcie_generation: card.ask(|card| card.current_pcie_link_gen()),
            pcie_width: card.ask(|card| card.current_pcie_link_width()),
            other_processes: card.other_processes(),
        }
    }
}

impl NvmlSensors {
    /// The sensors of a card; of a `slice`, those that mean the slice too. `lent` lives as long as they do.
    ///
    /// # Errors
    /// When NVML does not know the card.
    pub fn of(card: Card, slice: bool, lent: Arc<()>) -> Result<Self, String> {
        card.0.as_ref().map_err(Clone::clone)?;
        Ok(Self { card, slice, readings: 0, slow: None, _lent: lent })
    }

    /// A sensor of the whole card, whose value says nothing of a slice.
    fn of_whole<T>(&self, ask: impl FnOnce(&Card) -> Result<T, String>) -> Result<T, String> {
        if self.slice { Err("NVML tells that of the whole card, and this is a slice of it".into()) } else { ask(&self.card) }
    }
}

impl Sensors for NvmlSensors {
    fn read(&mut self) -> Reading {
        let known = self.slow.take().filter(|_| !self.readings.is_multiple_of(SLOW_EVERY));
        let slow = known.unwrap_or_else(|| Slow::ask(&self.card));
        self.slow = Some(slow.clone());
        self.readings = self.readings.wrapping_add(1);
        let Slow { pcie_generation, pcie_width, other_processes } = slow;
        Reading {
            sm_clock_mhz: self.card.ask(|card| card.clock_info(Clock::SM)).map(f64::from),
            memory_clock_mhz: self.card.ask(|card| card.clock_info(Clock::Memory)).map(f64::from),
            performance_state: self.card.ask(|card| card.performance_state()).and_then(state_number),
            throttle_reasons: self.card.ask(reason_bits).map(reasons::names),
            temperature_gpu_c: self.card.ask(|card| card.temperature(TemperatureSensor::Gpu)).map(f64::from),
            temperature_memory_c: self.card.temperature_memory_c(),
            power_w: self.of_whole(Card::power_w),
            energy_counter_j: self.of_whole(|card| card.ask(|card| card.total_energy_consumption())).map(|mj| mj as f64 / 1e3),
            pcie_generation,
            pcie_width,
            other_processes,
        }
    }
}

impl Card {
    /// A value that NVML has no function of its own for.
    fn field(&self, id: u32) -> Result<f64, String> {
        let mut values = self.ask(|card| card.field_values_for(&[FieldId(id)]))?;
        let value = says(values.pop().ok_or(NvmlError::NoData).flatten().and_then(|sample| sample.value))?;
        Ok(match value {
            SampleValue::F64(value) => value,
            SampleValue::U32(value) => f64::from(value),
            SampleValue::U64(value) => value as f64,
            SampleValue::I64(value) => value as f64,
        })
    }

    fn temperature_memory_c(&self) -> Result<f64, String> {
        let celsius = self.field(NVML_FI_DEV_MEMORY_TEMP)?;
        // Cards without such a sensor are said to answer 0.
        if celsius > 0.0 { Ok(celsius) } else { Err(format!("NVML tells {celsius} °C, which cannot be")) }
    }

    /// Power now where the card tells it, else as the driver averages it.
    fn power_w(&self) -> Result<(f64, PowerSource), String> {
        let watts = |milliwatts: f64| milliwatts / 1e3;
        match self.field(NVML_FI_DEV_POWER_INSTANT) {
            Ok(milliwatts) if milliwatts > 0.0 => Ok((watts(milliwatts), PowerSource::Instant)),
            _ => self.ask(|card| card.power_usage()).map(|milliwatts| (watts(f64::from(milliwatts)), PowerSource::Average)),
        }
    }
}

/// The bits as they are, also those that the wrapper does not know.
fn reason_bits(card: &Device) -> Result<u64, NvmlError> {
    match card.current_throttle_reasons_strict() {
        Ok(reasons) => Ok(reasons.bits()),
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Ok(bits),
        Err(error) => Err(error),
    }
}

/// The number after the P.
fn state_number(state: PerformanceState) -> Result<u32, String> {
    // NVML numbers them so, and 32 is its "unknown".
    match state.as_c() {
        number @ 0..=15 => Ok(number),
        _ => Err("NVML does not know the performance state".into()),
    }
}
