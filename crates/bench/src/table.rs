//! Tables for people, at most 80 columns wide, and the same for machines.

use serde_json::{Map, Value, json};

/// How tables are printed.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// One JSON object per table.
    pub json: bool,
}

/// What is printed at the end of a measurement.
#[derive(Debug)]
pub struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Table {
        Table {
            title: title.into(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn print(&self, output: Output) {
        if output.json {
            println!("{}", self.as_json());
        } else {
            println!("{}", self.as_text());
        }
    }

    fn as_json(&self) -> Value {
        let cell = |text: &String| match text.parse::<f64>() {
            Ok(number) if number.is_finite() => json!(number),
            _ => json!(text),
        };
        let rows = self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            let cells = cells.map(|(column, text)| ((*column).to_owned(), cell(text)));
            Value::Object(cells.collect::<Map<_, _>>())
        });
        json!({"table": self.title, "rows": rows.collect::<Vec<_>>(), "notes": self.notes})
    }

    fn as_text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|text| text.chars().count()).max();
                widest
                    .unwrap_or(0)
                    .max(self.columns[column].chars().count())
            })
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (index, (cell, width)) in cells.zip(&widths).enumerate() {
                if index == 0 {
                    text.push_str(&format!("  {cell:<width$}"));
                } else {
                    text.push_str(&format!("  {cell:>width$}"));
                }
            }
            text.trim_end().to_owned()
        };
        let mut lines = vec![self.title.clone()];
        lines.push(line(&mut self.columns.iter().copied()));
        for row in &self.rows {
            lines.push(line(&mut row.iter().map(String::as_str)));
        }
        lines.extend(self.notes.iter().map(|note| format!("  {note}")));
        lines.join("\n") + "\n"
    }
}

/// A number in as many digits as say something.
pub fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Whether something is as it should be, in one word.
pub fn verdict(is_met: bool) -> String {
    if is_met { "met" } else { "missed" }.to_owned()
}

/// Tells whoever waits what is going on.
pub fn progress(text: &str) {
    eprintln!("… {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_has_numbers_for_machines() {
        let mut table = Table::new("title", &["what", "measured"]);
        table.row(["a".to_owned(), number(12.345)]);
        table.row(["longer".to_owned(), number(1234.5)]);
        table.note("a note");
        let text = "title\n  what    measured\n  a           12.3\n  longer      1234\n  a note\n";
        assert_eq!(table.as_text(), text);
        assert_eq!(table.as_json()["rows"][0]["measured"], 12.3);
    }
}
