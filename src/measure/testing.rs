//! A device for the tests of this folder.

use super::measure;
use crate::device::{Device, DeviceError, Program, Timing, Variant, Verification};
use crate::pattern::{self, CaseId, Facts, Plan, Profile};
use crate::record::{self, Measurement, Missing, Peak, Peaks, Provenance};

/// A device whose every execution takes `ns`, with `mismatches` wrong results; `failing` loads fail.
pub struct Steady {
    pub ns: f64,
    pub mismatches: u64,
    pub failing: bool,
}

impl Device for Steady {
    fn facts(&self) -> Result<Facts, DeviceError> {
        Ok(Facts::H200)
    }
    fn identity(&self) -> Result<record::Device, DeviceError> {
        Err(DeviceError::Unsupported("nobody".into()))
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
    fn verify(&mut self) -> Result<Verification, DeviceError> {
        Ok(Verification { mismatches: self.mismatches, first_bad: (self.mismatches > 0).then_some(3) })
    }
}

pub fn row(id: &str, device: &mut Steady, peaks: &Peaks) -> Measurement {
    let case = pattern::plan(&CaseId::new(id), &Facts::H200).unwrap();
    measure(&case, device, &Facts::H200, Profile::Quick, peaks, &|| true).unwrap().row
}

pub fn peaks(gbps: f64, gflops: f64) -> Peaks {
    let peak = |value, provenance| vec![Peak { value, provenance }];
    Peaks {
        memory_gbps: peak(gbps, Provenance::DeviceAttributes),
        compute_gflops: [("fma/f32".to_owned(), peak(gflops, Provenance::Measured))].into(),
        missing: Missing::new(),
    }
}
