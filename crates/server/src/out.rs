//! What goes to stdout. Whoever reads it may leave (`| head`): that is no failure of ours.
//! Everything else that keeps a text from arriving is one.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Prints a line as it stands: JSON.
pub fn line(text: impl Display) -> Result<(), Failure> {
    self::text(&format!("{text}\n"))
}

/// Prints a line for people.
pub fn sentence(text: impl Display) -> Result<(), Failure> {
    line(escaped(&text.to_string()))
}

/// Prints a text as it stands, at once.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    ended(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Tells whoever watches, on stderr; if nobody can be told, nobody is.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What an attempt to print means for the exit status.
pub fn ended(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        // A reader that left misses nothing that it wanted.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::work(format!("can't print: {error}")))
        }
        _ => Ok(()),
    }
}

/// A text without what moves a terminal's cursor, breaks its lines, turns their direction or isn't
/// seen at all: such characters are written as `\u{202e}`.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2060}'
            | '\u{feff}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                escaped.extend(char.escape_unicode());
            }
            control if control.is_control() => escaped.extend(control.escape_unicode()),
            seen => escaped.push(seen),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_the_eye_is_written_out_and_all_else_stays() {
        assert_eq!(
            escaped("a\u{202e}b\u{1b}[2J\u{2028}"),
            r"a\u{202e}b\u{1b}[2J\u{2028}"
        );
        // The family is held together by zero-width joiners.
        for text in [
            "größe \u{5d0}\u{5d1}",
            "👨\u{200d}👩\u{200d}👧",
            "\\u{202e}",
        ] {
            assert_eq!(escaped(text), text);
        }
    }
}
