//! Writing to the two streams of the program: data to standard output, remarks to
//! standard error.

use std::io::{ErrorKind, Write};

/// How a command prints what it found.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

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

/// Writes a remark to standard error. Nobody there to read it is no reason to stop.
///
/// Names from files and drivers may hold control characters, which a terminal would obey.
pub fn note(text: &str) {
    let text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Characters in a line of the terminal that standard output is, if it is one.
pub fn width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}
