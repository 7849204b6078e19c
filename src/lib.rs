//! `hbmark` measures what the memory of a card, HBM or GDDR, really delivers.
//!
//! Data flows one way through these modules:
//! [`pattern`] says what runs, [`device`] where, [`measure`] how it is timed and
//! verified, [`session`] in which process, so that a failure loses one case only,
//! [`record`] what is kept; [`check`] says what of it can be trusted, [`plateau`] what curves of it mean, [`chart`] and [`report`] draw and write from
//! records alone, with no device; [`catalog`] says what was known before. [`cli`] joins
//! them into the program.
#![warn(missing_docs)]

pub mod catalog;
pub mod chart;
pub mod check;
pub mod cli;
pub mod device;
pub mod measure;
pub mod pattern;
pub mod plateau;
pub mod record;
pub mod report;
pub mod session;
