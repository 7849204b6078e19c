//! Writing to standard output.

use std::io::{ErrorKind, Write};

/// Writes `text` to standard output; a reader that has gone away (`| head`) is no failure.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn emit(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
