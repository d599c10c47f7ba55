//! The picture of a session: a lane for each kind of thing that lasts. The table says the same.

use std::io::{self, Write};

use super::clock::lasting;
use super::session::{Lane, Session};

/// Bars that are drawn; more would hide each other.
const BARS: usize = 500;
const LEFT: f64 = 90.0;
const WIDTH: f64 = 900.0;
const LANE: usize = 34;

pub(super) fn write(out: &mut impl Write, number: usize, session: &Session) -> io::Result<()> {
    let length = session.to_us.saturating_sub(session.from_us).max(1);
    let place = |at: u64| LEFT + at.saturating_sub(session.from_us) as f64 / length as f64 * WIDTH;
    let height = Lane::ALL.len() * LANE + 30;
    writeln!(
        out,
        "<svg viewBox=\"0 0 1000 {height}\" role=\"img\" aria-labelledby=\"p{number}\">"
    )?;
    let shown = session.spans.len().min(BARS);
    let rest = session.spans.len() - shown;
    let rest =
        if rest > 0 { format!(" {rest} more are only in the table.") } else { String::new() };
    writeln!(
        out,
        "<title id=\"p{number}\">Session {number} drawn over {}: {shown} things that lasted. The table below says the same.{rest}</title>",
        lasting(length)
    )?;
    for (row, lane) in Lane::ALL.into_iter().enumerate() {
        let top = row * LANE;
        writeln!(out, "<text x=\"0\" y=\"{}\">{}</text>", top + 20, lane.name())?;
        let spans = session.spans.iter().take(BARS).filter(|span| span.lane == lane);
        for span in spans {
            let from = place(span.from_us);
            let to = place(span.to_us.unwrap_or(session.to_us));
            let wide = (to - from).max(2.0);
            writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{}\" width=\"{wide:.1}\" height=\"22\"/>",
                top + 4
            )?;
        }
    }
    let floor = Lane::ALL.len() * LANE + 4;
    writeln!(out, "<line x1=\"{LEFT}\" y1=\"{floor}\" x2=\"{}\" y2=\"{floor}\"/>", LEFT + WIDTH)?;
    writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">0 s</text>", floor + 20)?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n</svg>",
        LEFT + WIDTH,
        floor + 20,
        lasting(length)
    )
}
