//! What a client can see, in a form that is the same each time that the same happened.

use serde_json::{Map, Value, json};

use crate::requests::Answer;

/// Longer runs of hexadecimal digits and hyphens are ids that differ from case to case.
const LONGEST_WORD: usize = 12;
/// A text of more digits is an id.
const LONGEST_NUMBER: usize = 12;
/// Longer JSON is cut in messages.
const LONGEST_SHOWN: usize = 240;

/// The answers to all that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation(Vec<(u16, Value)>);

impl Observation {
    /// Of the names of a case: its tag is in all of them.
    pub fn of(answers: &[Answer], tag: &str) -> Observation {
        let fixed = |answer: &Answer| (answer.status, fixed(&answer.body, tag));
        Observation(answers.iter().map(fixed).collect())
    }

    /// The first few words.
    pub fn short(&self) -> String {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(s, body)| format!("{s} {body}"))
            .collect();
        cut(&all.join("; "))
    }

    /// Where two of them differ first, in short.
    pub fn difference(&self, other: &Observation) -> String {
        let (one, two) = (self.text(), other.text());
        let same = one.iter().zip(&two).take_while(|(a, b)| a == b).count();
        let from = |text: &[char]| text[same.saturating_sub(60)..].iter().collect::<String>();
        format!("…{} / …{}", cut(&from(&one)), cut(&from(&two)))
    }

    fn text(&self) -> Vec<char> {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(s, body)| format!("{s} {body}"))
            .collect();
        all.join("; ").chars().collect()
    }
}

/// An answer in short.
pub fn short(answer: &Option<Answer>) -> String {
    match answer {
        Some(answer) => format!("{} {}", answer.status, cut(&answer.body.to_string())),
        None => "no answer".to_owned(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn fixed(value: &Value, tag: &str) -> Value {
    match value {
        Value::Object(members) => {
            let fixed = members.iter().map(|(name, value)| {
                let value = match value {
                    Value::Number(_) if is_time(name) => json!("TIME"),
                    value => fixed(value, tag),
                };
                (name.clone(), value)
            });
            Value::Object(fixed.collect::<Map<_, _>>())
        }
        Value::Array(values) => values.iter().map(|value| fixed(value, tag)).collect(),
        Value::String(text) => json!(fixed_text(&text.replace(tag, "TAG"))),
        other => other.clone(),
    }
}

/// Milliseconds, in the words of Iceberg and of `/v1`.
fn is_time(name: &str) -> bool {
    name.ends_with("-ms") || name == "createdAt"
}

fn fixed_text(text: &str) -> String {
    let is_number = text.len() > LONGEST_NUMBER && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        return "ID".to_owned();
    }
    let is_of_id = |letter: char| letter == '-' || matches!(letter, '0'..='9' | 'a'..='f');
    let mut fixed = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|letter| !is_of_id(letter)).unwrap_or(rest.len());
        match run > LONGEST_WORD {
            true => fixed.push_str("ID"),
            false => fixed.push_str(&rest[..run]),
        }
        rest = &rest[run..];
        let other = rest.find(is_of_id).unwrap_or(rest.len());
        fixed.push_str(&rest[..other]);
        rest = &rest[other..];
    }
    fixed
}
