//! The `hbmark` program: reads the command line, does it, and says by its exit code how that went.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic is a fault of this program: said in one line, with the documented code.
    std::panic::catch_unwind(hbmark::cli::main).unwrap_or(ExitCode::from(hbmark::cli::Exit::Internal as u8))
}
