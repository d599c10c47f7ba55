//! The view as one page: no scripts, nothing loaded, every word of a recording escaped.

use std::fmt;
use std::io::{self, Write};

use super::clock::lasting;
use super::picture;
use super::session::{Lane, Session};
use super::story::{Remark, Story};
use super::text::{facts, summary};
use crate::lines::Plain;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
<meta name=\"referrer\" content=\"no-referrer\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

const STYLE: &str = "<style>\n\
:root{color-scheme:light dark}\n\
body{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:0 auto;padding:1rem;background:Canvas;color:CanvasText;overflow-wrap:anywhere}\n\
table{border-collapse:collapse;width:100%}caption{text-align:start;font-weight:bold}\n\
th,td{border:1px solid;padding:.25rem .5rem;text-align:start;vertical-align:top}\n\
pre{white-space:pre-wrap;border:1px solid;padding:.5rem}\n\
dt{font-weight:bold}\n\
svg{width:100%;height:auto}svg text{fill:CanvasText;font:14px system-ui,sans-serif}\n\
svg rect{fill:LinkText;stroke:CanvasText}svg line{stroke:CanvasText}\n\
a:focus{outline:3px solid}\n\
</style>\n</head>\n<body>\n";

/// Words of a recording, between tags or in an attribute: nothing of them is markup, or turns the
/// direction of what stands around them.
pub(super) struct Safe<'a>(pub(super) &'a str);

impl fmt::Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in Plain(self.0).to_string().chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => fmt::Write::write_char(f, other)?,
            }
        }
        Ok(())
    }
}

pub(super) fn write(out: &mut impl Write, story: &Story, name: &str) -> io::Result<()> {
    write!(out, "{HEAD}<title>AAEP recording: {}</title>\n{STYLE}", Safe(name))?;
    writeln!(out, "<main>\n<h1>Recording <bdi>{}</bdi></h1>", Safe(name))?;
    for line in summary(story) {
        writeln!(out, "<p>{}</p>", Safe(&line))?;
    }
    if !story.sessions.is_empty() {
        writeln!(out, "<nav aria-label=\"Sessions\">\n<ol>")?;
        for (number, session) in story.sessions.iter().enumerate() {
            let number = number + 1;
            let title = Safe(&session.title);
            let end = session.end.unwrap_or("not ended");
            writeln!(
                out,
                "<li><a href=\"#s{number}\">Session {number}: <bdi>{title}</bdi></a> {end}</li>"
            )?;
        }
        writeln!(out, "</ol>\n</nav>")?;
    }
    if !story.remarks.is_empty() {
        writeln!(out, "<h2>Beside the sessions</h2>")?;
        remarks(out, &story.remarks)?;
    }
    for (number, one) in story.sessions.iter().enumerate() {
        session(out, number + 1, one)?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn session(out: &mut impl Write, number: usize, session: &Session) -> io::Result<()> {
    let title = Safe(&session.title);
    writeln!(out, "<section aria-labelledby=\"s{number}\">")?;
    writeln!(
        out,
        "<h2 id=\"s{number}\" tabindex=\"-1\">Session {number}: <bdi>{title}</bdi></h2>\n<dl>"
    )?;
    for (name, value) in facts(session) {
        writeln!(out, "<dt>{name}</dt><dd><bdi>{}</bdi></dd>", Safe(&value))?;
    }
    writeln!(out, "</dl>")?;
    if !session.findings.is_empty() {
        writeln!(out, "<h3>Found in the session as a whole</h3>")?;
        remarks(out, &session.findings)?;
    }
    if !session.spans.is_empty() {
        writeln!(out, "<h3>What lasted</h3>")?;
        picture::write(out, number, session)?;
        spans(out, session)?;
    }
    let outputs = session.spans.iter().filter(|span| span.lane == Lane::Output);
    for span in outputs {
        writeln!(out, "<h3>Output <bdi>{}</bdi></h3>\n<pre dir=\"auto\">", Safe(&span.name))?;
        for line in span.text.lines() {
            writeln!(out, "{}", Safe(line))?;
        }
        writeln!(out, "</pre>")?;
    }
    writeln!(out, "<h3>Events</h3>\n<table>\n<caption>Events of session {number}</caption>")?;
    writeln!(
        out,
        "<thead><tr><th scope=\"col\">After</th><th scope=\"col\">Line</th><th scope=\"col\">What</th><th scope=\"col\">Text</th></tr></thead>\n<tbody>"
    )?;
    for row in &session.rows {
        let at = lasting(row.at_us.saturating_sub(session.from_us));
        let (line, what, text) = (row.line, Safe(&row.what), Safe(&row.text));
        write!(
            out,
            "<tr><td>{at}</td><td>{line}</td><td><bdi>{what}</bdi></td><td><bdi>{text}</bdi>"
        )?;
        if !row.findings.is_empty() {
            remarks(out, &row.findings)?;
        }
        writeln!(out, "</td></tr>")?;
    }
    writeln!(out, "</tbody>\n</table>\n</section>")
}

fn spans(out: &mut impl Write, session: &Session) -> io::Result<()> {
    writeln!(out, "<table>\n<caption>The same as a table</caption>")?;
    writeln!(
        out,
        "<thead><tr><th scope=\"col\">Kind</th><th scope=\"col\">What</th><th scope=\"col\">From</th><th scope=\"col\">End</th></tr></thead>\n<tbody>"
    )?;
    for span in &session.spans {
        let from = lasting(span.from_us.saturating_sub(session.from_us));
        let about =
            if span.lane == Lane::Output || span.text.is_empty() { &span.name } else { &span.text };
        let name = match span.lane {
            Lane::Tool if about != &span.name => format!("{}: {about}", span.name),
            _ => about.clone(),
        };
        let (kind, name, end) = (span.lane.name(), Safe(&name), span.ended());
        let end = Safe(&end);
        writeln!(
            out,
            "<tr><td>{kind}</td><td><bdi>{name}</bdi></td><td>{from}</td><td><bdi>{end}</bdi></td></tr>"
        )?;
    }
    writeln!(out, "</tbody>\n</table>")
}

fn remarks(out: &mut impl Write, remarks: &[Remark]) -> io::Result<()> {
    write!(out, "<ul>")?;
    for remark in remarks {
        write!(out, "<li>Line {}: <bdi>{}</bdi></li>", remark.line, Safe(&remark.text))?;
    }
    writeln!(out, "</ul>")
}
