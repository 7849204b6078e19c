//! IN WHICH PROCESS it is measured: one run of one device, in child processes of this program; and
//! then all devices at once, if the user wants that ([`Together`]).
//!
//! The parent plans, keeps the document and never opens the device. A child opens it, measures
//! the cases of one pattern, and answers line by line ([`protocol`]). Whatever goes wrong in a
//! case, an illegal address, a crash, a call that never returns, ends with its child and is a row
//! of the document; the next case starts in a fresh child, on a fresh context.

mod child;
mod forms;
mod gate;
mod limit;
mod losses;
mod plans;
mod process;
pub mod protocol;
mod run;
mod together;

pub use child::{ServeError, serve};
pub use forms::{CACHE_VARIABLE, Forms, forms_file};
pub use plans::{Plans, Soaks};
pub use process::{CHILD_COMMAND, probe, start};
pub use run::{Event, Heard, Session, SessionError, Start, Worker};
pub use together::{Absent, Member, Together};
