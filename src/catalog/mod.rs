//! WHAT IS KNOWN BEFOREHAND: cards by their data sheets, and bandwidths that others published.
//!
//! Both are JSON files beside this one, compiled in. They hold figures with their
//! sources and nothing that this program measured.

mod card;
mod published;
mod recognise;

pub use card::{Card, CardMemory, MemoryFamily, Source, card, cards};
pub use published::{Confidence, OPERATIONS, Origin, Published, Worker, chosen, published};
pub use recognise::{of_device, recognise};
