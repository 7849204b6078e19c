//! What people read of a curve.

use super::{Findings, Place, Plateau};
use crate::chart::words::{bytes, figure};
use crate::pattern::DeviceKind;

impl Findings {
    /// `L2 7050 GB/s up to 32 MiB`, or for the memory `from 128 MiB on`.
    fn level(&self, plateau: &Plateau) -> String {
        let whole = match plateau.place {
            Place::Near | Place::Far => format!("up to {}", bytes(plateau.last_bytes)),
            Place::Memory | Place::Large => format!("from {} on", bytes(plateau.first_bytes)),
        };
        format!("{} {} GB/s {whole}", self.name(plateau.place), figure(plateau.gbps))
    }

    /// All plateaus in one sentence.
    pub fn levels(&self) -> String {
        let levels: Vec<String> = self.plateaus.iter().map(|plateau| self.level(plateau)).collect();
        format!("Reads by footprint: {}.", levels.join(", "))
    }

    /// The capacity of the last cache in a sentence, and in a second one that what is told of it disagrees.
    pub fn extent(&self) -> String {
        let (cache, teller) = match self.kind {
            DeviceKind::Cuda => ("an L2", "driver"),
            DeviceKind::Host => ("a last cache", "system"),
        };
        let told = match self.told_bytes {
            Some(told) => format!("the {teller} says {}", bytes(told)),
            None => format!("the {teller} does not tell its size"),
        };
        let capacity = &self.capacity;
        let mib = |bytes: u64| figure(bytes as f64 / f64::from(1 << 20));
        let curve = format!(
            "That is the curve of {cache} of {} MiB ({} to {} fit it); {told}.",
            mib(capacity.bytes),
            mib(capacity.low_bytes),
            mib(capacity.high_bytes)
        );
        match self.disagreement() {
            None => curve,
            Some(difference) => format!(
                "{curve} They are {:.0} % apart: trust the curve for what a program gets, of a cache that is shared out, set aside in part or \
                 holds some data twice.",
                difference.abs() * 100.0
            ),
        }
    }
}
