//! Where in a server something happens.

use std::fmt;

use serde_json::{Value, json};

/// On which side of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum When {
    Before,
    After,
}

/// The nth time from now that a call comes to this side.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    pub call: String,
    pub when: When,
    pub nth: u64,
}

/// The next time that the call is about to be made.
pub fn before(call: &str) -> Point {
    Point {
        call: call.to_owned(),
        when: When::Before,
        nth: 1,
    }
}

/// The next time that the call has been made.
pub fn after(call: &str) -> Point {
    Point {
        when: When::After,
        ..before(call)
    }
}

impl Point {
    /// Not the next but the nth time.
    pub fn nth(self, nth: u64) -> Point {
        Point { nth, ..self }
    }

    pub(super) fn order(&self, word: &str) -> Value {
        json!({ "do": word, "call": self.call, "when": self.when.name(), "nth": self.nth })
    }
}

impl When {
    pub fn name(self) -> &'static str {
        match self {
            When::Before => "before",
            When::After => "after",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.when.name(), self.call, self.nth)
    }
}
