//! Tables that fit a terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use crate::failure::Failure;
use crate::out;

const GAP: &str = "  ";
const NARROWEST: usize = 8;

/// Rows under headings.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(headings: &[&str]) -> Table {
        let headings = headings.iter().map(|heading| heading.to_uppercase());
        Table {
            rows: vec![headings.collect()],
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows
            .push(cells.map(|cell| out::escaped(&cell)).to_vec());
    }

    /// Prints it with every cell in full: what describes one thing is there to be copied.
    pub fn print_whole(&self) -> Result<(), Failure> {
        out::text(&self.render(None))
    }

    /// Prints it, cut to the terminal's width if it goes to one.
    pub fn print(&self) -> Result<(), Failure> {
        let width = std::io::stdout().is_terminal().then(terminal_width);
        out::text(&self.render(width))
    }

    fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let cell = fitted(cell, *width);
                let padding = width.saturating_sub(cell.chars().count());
                // Writing to a String can't fail.
                let _ = write!(line, "{cell}{:padding$}{GAP}", "");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The width of each column: what it needs, the widest ones cut until all fit.
    fn widths(&self, available: Option<usize>) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let needed = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let lengths = cells.map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(needed).collect();
        let Some(available) = available else {
            return widths;
        };
        let gaps = GAP.len() * columns.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > available {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// A text cut to so many characters.
pub fn fitted(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept = cell.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// The columns of the terminal, or so many as anyone has.
pub fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["name", "location"]);
        table.row(["lake".into(), "s3://a/very/long/location".into()]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_and_lines_have_no_blank_ends() {
        let text = "NAME  LOCATION\nlake  s3://a/very/long/location\n";
        assert_eq!(table().render(None), text);
    }

    #[test]
    fn the_widest_column_is_cut_to_fit() {
        let text = table().render(Some(20));
        assert_eq!(text, "NAME  LOCATION\nlake  s3://a/very/l…\n");
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        let mut table = Table::new(&["name"]);
        table.row(["a\u{1b}[2Jb".into()]);
        assert_eq!(table.render(None), "NAME\na\\u{1b}[2Jb\n");
    }
}
