//! The arithmetic units that compute utilization refers to.

use serde::{Deserialize, Serialize};

use super::CaseId;

/// The unit that a case's arithmetic runs on, written `operation/type` as in the
/// id of the compute case that measures its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pipe {
    /// Single-precision fused multiply-add.
    #[serde(rename = "fma/f32")]
    FmaF32,
    /// Half-precision products on tensor cores, summed in f32.
    #[serde(rename = "mma/f16")]
    MmaF16,
}

impl Pipe {
    /// The name used in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FmaF32 => "fma/f32",
            Self::MmaF16 => "mma/f16",
        }
    }

    /// The id of the case that measures this pipe's peak; not every pipe has one yet.
    pub fn peak_case(self) -> CaseId {
        CaseId::new(&format!("compute/{}", self.name()))
    }

    /// Floating-point operations that one multiprocessor of a compute capability can do in
    /// a clock; none for capabilities that are not in the table (CUDA C++ Programming Guide,
    /// "Throughput of Native Arithmetic Instructions": multiply-adds count two here).
    pub fn flops_per_clock(self, capability: (u32, u32)) -> Option<u32> {
        let multiply_adds = match (self, capability) {
            (Self::FmaF32, (7, 0 | 2 | 5) | (8, 0)) => 64,
            (Self::FmaF32, (8, 6 | 7 | 9) | (9, 0) | (10, 0 | 1 | 3) | (11, 0) | (12, 0 | 1)) => 128,
            _ => return None,
        };
        Some(multiply_adds * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data sheets' single-precision rates: (capability, multiprocessors, boost MHz, TFLOP/s).
    #[test]
    fn operations_a_clock_are_those_of_the_data_sheets() {
        for (card, capability, units, mhz, tflops) in [
            ("V100 SXM2", (7, 0), 80, 1530.0, 15.7),
            ("T4", (7, 5), 40, 1590.0, 8.1),
            ("A100", (8, 0), 108, 1410.0, 19.5),
            ("RTX 3090", (8, 6), 82, 1695.0, 35.6),
            ("RTX 4090", (8, 9), 128, 2520.0, 82.6),
            ("H100 SXM5", (9, 0), 132, 1980.0, 66.9),
            ("RTX 5090", (12, 0), 170, 2407.0, 104.8),
        ] {
            let flops = f64::from(Pipe::FmaF32.flops_per_clock(capability).unwrap() * units) * mhz * 1e6;
            assert!((flops / 1e12 / tflops - 1.0).abs() < 0.01, "{card}: {flops}");
        }
    }

    #[test]
    fn an_unknown_architecture_has_no_theoretical_peak() {
        assert_eq!(Pipe::FmaF32.flops_per_clock((6, 1)), None);
        assert_eq!(Pipe::FmaF32.flops_per_clock((13, 0)), None);
    }
}
