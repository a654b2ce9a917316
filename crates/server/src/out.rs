//! What goes to stdout. Whoever reads it may leave (`| head`): that is no failure of ours.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line.
pub fn line(text: impl Display) {
    // A reader that left misses nothing that it wanted.
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints a text as it stands, at once.
pub fn text(text: &str) {
    let mut out = io::stdout().lock();
    // As above.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
