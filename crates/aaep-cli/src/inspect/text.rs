//! The view in plain lines.

use std::io::{self, Write};

use super::clock::lasting;
use super::session::{Lane, Row, Session};
use super::story::{Remark, Story};
use crate::lines::{Plain, count};

/// A line of a session, with what was found there.
pub(super) fn row(out: &mut (impl Write + ?Sized), session: &Session, row: &Row) -> io::Result<()> {
    let at = lasting(row.at_us.saturating_sub(session.from_us));
    writeln!(out, "  {at}, line {}: {}: {}", row.line, Plain(&row.what), Plain(&row.text))?;
    row.findings.iter().try_for_each(|finding| writeln!(out, "    {}", Plain(&finding.text)))
}

pub(super) fn remark(out: &mut (impl Write + ?Sized), remark: &Remark) -> io::Result<()> {
    writeln!(out, "  Line {}: {}", remark.line, Plain(&remark.text))
}

pub(super) fn write(out: &mut impl Write, story: &Story, with_rows: bool) -> io::Result<()> {
    for (number, session) in story.sessions.iter().enumerate() {
        writeln!(out, "Session {} of {}", number + 1, story.sessions.len())?;
        about(out, session)?;
        if with_rows {
            writeln!(out, "Events:")?;
            session.rows.iter().try_for_each(|one| row(out, session, one))?;
        }
        if !session.findings.is_empty() {
            writeln!(out, "Found in the session as a whole:")?;
            session.findings.iter().try_for_each(|one| remark(out, one))?;
        }
        writeln!(out)?;
    }
    if !story.remarks.is_empty() {
        writeln!(out, "Beside the sessions:")?;
        story.remarks.iter().try_for_each(|one| remark(out, one))?;
    }
    for line in summary(story) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// How much there was, and what is not shown.
pub(super) fn summary(story: &Story) -> Vec<String> {
    let mut lines = vec![format!(
        "{}, {}: {}, {}, {}.",
        count(story.sessions.len() as u64, "session"),
        count(story.messages, "message"),
        count(story.errors, "error"),
        count(story.warnings, "warning"),
        count(story.notes, "note")
    )];
    let sessions: u64 = story.sessions.iter().map(|session| session.left_out).sum();
    let left_out = story.left_out + sessions + story.remarks_left_out;
    if left_out > 0 {
        lines.push(format!("Not shown, because there is too much: {left_out}."));
    }
    lines
}

/// Who, how long, and how it ended.
pub(super) fn facts(session: &Session) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Session id", session.id.clone())];
    facts.extend(session.agent.clone().map(|agent| ("Agent", agent)));
    let length = lasting(session.to_us - session.from_us);
    let begun = if session.begun { "" } else { " Its beginning is not in the recording." };
    facts.push(("Lasted", format!("{length}.{begun}")));
    let end = session.end.unwrap_or("its end is not in the recording");
    facts.push(("Ended", end.to_owned()));
    facts
}

fn about(out: &mut impl Write, session: &Session) -> io::Result<()> {
    writeln!(out, "{}", Plain(&session.title))?;
    for (name, value) in facts(session) {
        writeln!(out, "{name}: {}", Plain(&value))?;
    }
    for lane in Lane::ALL {
        for span in session.spans.iter().filter(|span| span.lane == lane) {
            let from = lasting(span.from_us.saturating_sub(session.from_us));
            let name = Plain(&span.name);
            writeln!(out, "{}: {name}. At {from}. {}", lane.name(), Plain(&span.ended()))?;
            if lane != Lane::State && !span.text.is_empty() {
                for line in span.text.lines() {
                    writeln!(out, "  {}", Plain(line))?;
                }
            }
        }
    }
    Ok(())
}
