//! The `hbmark` program: reads the command line, does it, and says by its exit code how that went.

use std::process::ExitCode;

fn main() -> ExitCode {
    hbmark::cli::main()
}
