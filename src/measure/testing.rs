//! A device for the tests of this folder.

use super::{Particulars, Settings, measure};
use crate::device::{Device, DeviceError, Program, Reading, Sensors, Timing, Variant, Verification};
use crate::pattern::{self, CacheState, CaseId, Data, Facts, Form, Plan, Profile, Way};
use crate::record::{self, Measurement, Missing, Peak, Peaks, PowerSource, Provenance};

/// A device whose every execution takes `ns`, with `mismatches` wrong results; `failing` loads fail.
#[derive(Default)]
pub struct Steady {
    pub ns: f64,
    pub mismatches: u64,
    pub failing: bool,
    /// The data that were asked for.
    pub prepared: Vec<Data>,
    /// The ways that it was to take, by their forms.
    pub taken: Vec<Form>,
    /// How often its caches were filled with other memory.
    pub evictions: u32,
    /// By how much its free memory falls for a plan.
    pub taken_bytes: Option<u64>,
    /// What each of its buffers holds.
    pub held: Vec<u32>,
}

impl Device for Steady {
    fn facts(&self) -> Result<Facts, DeviceError> {
        Ok(Facts::H200)
    }
    fn identity(&self) -> Result<record::Device, DeviceError> {
        Err(DeviceError::Unsupported("nobody".into()))
    }
    fn sensors(&mut self) -> Result<Box<dyn Sensors>, String> {
        Err("no sensors".into())
    }
    fn load<'a>(&'a mut self, _plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError> {
        if self.failing { Err(DeviceError::OutOfMemory("none left".into())) } else { Ok(Box::new(&mut *self)) }
    }
}

impl Program for &mut Steady {
    fn variant(&self) -> Variant {
        Variant::new()
    }
    fn execute(&mut self, executions: u32) -> Result<Timing, DeviceError> {
        Ok(Timing { ns: self.ns * f64::from(executions), sm_clock_mhz: Some(1980.0) })
    }
    fn take(&mut self, way: &Way) -> Result<(), DeviceError> {
        self.taken.push(way.form);
        Ok(())
    }
    fn evict_caches(&mut self) -> Result<(), DeviceError> {
        self.evictions += 1;
        Ok(())
    }
    fn memory_taken_bytes(&self) -> Result<u64, String> {
        self.taken_bytes.ok_or_else(|| "not told".into())
    }
    fn prepare(&mut self, data: Data) -> Result<(), DeviceError> {
        self.prepared.push(data);
        Ok(())
    }
    fn check(&mut self) -> Result<Verification, DeviceError> {
        Ok(Verification { mismatches: self.mismatches, first_bad: (self.mismatches > 0).then_some(3), stray: 0 })
    }
    fn read(&mut self, _buffer: usize) -> Result<Vec<u32>, DeviceError> {
        Ok(self.held.clone())
    }
    fn alter(&mut self, _buffer: usize, _change: &dyn Fn(&mut [u32])) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported("nothing is held".into()))
    }
}

/// A steady device whose sensors tell 600 W and three other processes, and nothing else.
pub struct Sensing(pub Steady);

impl Device for Sensing {
    fn facts(&self) -> Result<Facts, DeviceError> {
        self.0.facts()
    }
    fn identity(&self) -> Result<record::Device, DeviceError> {
        self.0.identity()
    }
    fn sensors(&mut self) -> Result<Box<dyn Sensors>, String> {
        struct Told;
        impl Sensors for Told {
            fn read(&mut self) -> Reading {
                Reading { power_w: Ok((600.0, PowerSource::Instant)), other_processes: Ok(3), ..Reading::untold("not told") }
            }
        }
        Ok(Box::new(Told))
    }
    fn load<'a>(&'a mut self, plan: &'a Plan) -> Result<Box<dyn Program + 'a>, DeviceError> {
        self.0.load(plan)
    }
}

/// Those of most runs.
pub const SETTINGS: Settings = Settings { profile: Profile::Quick, data: Data::Random, cache: CacheState::Hot };

pub fn row(id: &str, device: &mut Steady, peaks: &Peaks) -> Measurement {
    let case = pattern::plan(&CaseId::new(id), &Facts::H200).unwrap();
    measure(&case, device, &Facts::H200, SETTINGS, peaks, Particulars::default(), &|| true).unwrap().row
}

pub fn peaks(gbps: f64, gflops: f64) -> Peaks {
    let peak = |value, provenance| vec![Peak { value, provenance }];
    Peaks {
        memory_gbps: peak(gbps, Provenance::DeviceAttributes),
        link_gbps: Vec::new(),
        compute_gflops: [("fma/f32".to_owned(), peak(gflops, Provenance::Measured))].into(),
        missing: Missing::new(),
    }
}
