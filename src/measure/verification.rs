//! Whether a case computes what it should, asked after it was timed.

use crate::device::{DeviceError, Program, Verification};
use crate::pattern::{Data, Plan};

/// Runs the work once more on the data that was timed, into poisoned outputs, and compares
/// every result. Where results are rounded, and so are compared with a tolerance, the same
/// is done with small integers, of which every result is exact.
///
/// # Errors
/// When the device fails; wrong results are no error here but a finding.
pub fn verify(program: &mut dyn Program, plan: &Plan, data: Data) -> Result<Verification, DeviceError> {
    verify_with(program, plan, data, &mut |_, _| Ok(()))
}

/// What is done to a program before and after each execution; the flag says whether it is done.
pub(super) type Between<'a> = &'a mut dyn FnMut(&mut dyn Program, bool) -> Result<(), DeviceError>;

/// As [`verify`], with `between` called around each execution.
pub(super) fn verify_with(program: &mut dyn Program, plan: &Plan, data: Data, between: Between) -> Result<Verification, DeviceError> {
    let mut once = |data| {
        program.prepare(data)?;
        between(program, false)?;
        program.execute(1)?;
        between(program, true)?;
        program.check()
    };
    let timed = once(data)?;
    Ok(if plan.rounds() { timed.and(once(Data::SmallIntegers)?) } else { timed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::Steady;
    use crate::pattern::{self, CaseId, Facts};

    #[test]
    fn rounded_results_are_verified_twice_and_others_once() {
        for (id, prepared) in [
            ("stream/copy/f32@4096", vec![Data::Random]),
            ("stream/triad/f32@4096", vec![Data::Random, Data::SmallIntegers]),
            ("conv3d/direct/f32/2x2@4x4x4", vec![Data::Random, Data::SmallIntegers]),
        ] {
            let plan = pattern::plan(&CaseId::new(id), &Facts::H200).unwrap().plan;
            let mut device = Steady { ns: 1e6, mismatches: 1, failing: false, ..Steady::default() };
            let found = verify(&mut &mut device, &plan, Data::Random).unwrap();
            assert_eq!((device.prepared, found.mismatches), (prepared.clone(), prepared.len() as u64), "{id}");
        }
    }
}
