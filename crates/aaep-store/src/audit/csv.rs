//! Records as CSV, for a spreadsheet: one line for each, with what most people look for.

use std::io::{self, Write};

use aaep_engine::Record;
use aaep_types::Timestamp;

use super::export::{Exported, Filter, each_line, reason_text};
use crate::chain::hex;
use crate::sqlite::{Columns, Reader, gone, shown};

const HEADER: &str = "number,at,kind,session,agent,user,request,tool,arguments,text,irreversible,outcome,runs,decided_by,response,call,reason,keyed,hash";

/// Writes a header, and one line for each record that the filter admits; returns how many. It leaves
/// out what was announced: [`super::export`] has all of it.
pub fn export_csv(reader: &Reader, filter: &Filter, out: &mut impl Write) -> io::Result<u64> {
    writeln!(out, "{HEADER}")?;
    each_line(reader, filter, |exported| writeln!(out, "{}", line(exported)))
}

fn line(exported: &Exported<'_>) -> String {
    let Exported { kept, record, whose, keyed } = *exported;
    let columns = record
        .map_or_else(|| Columns { kind: gone::KIND.into(), ..Columns::default() }, Columns::of);
    let (mut arguments, mut response) = ("", "");
    match record {
        Some(Record::Asked(asked)) => arguments = &asked.arguments,
        Some(Record::Resolved { response: answer, .. }) => response = answer,
        _ => {}
    }
    let text = match record {
        Some(Record::Asked(asked)) => shown(&asked.event),
        Some(Record::Erased { note, .. }) => Some(note.to_string()),
        _ => None,
    };
    let at = Timestamp::from_millis(kept.at.div_euclid(1000));
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
    let or = |text: Option<&std::sync::Arc<str>>| text.map(ToString::to_string);
    let agent = or(whose.map(|whose| &whose.agent)).or(or(columns.agent.as_ref()));
    let user = or(whose.map(|whose| &whose.user)).or(or(columns.user.as_ref()));
    let cells = [
        Some(kept.number.to_string()),
        Some(at.map_or_else(|| kept.at.to_string(), |at| at.to_string())),
        Some(columns.kind.to_string()),
        or(whose.map(|whose| &whose.session)).or(or(columns.session.as_ref())),
        agent,
        user,
        columns.request.clone(),
        or(columns.tool.as_ref()),
        Some(arguments.to_owned()),
        text,
        flag(columns.irreversible),
        columns.outcome.clone(),
        flag(columns.runs),
        or(columns.decided_by.as_ref()),
        Some(response.to_owned()),
        or(columns.call.as_ref()),
        columns.reason.map(|reason| reason_text(reason).to_owned()),
        Some(keyed.to_string()),
        Some(hex(&kept.hash)),
    ];
    cells.map(|value| cell(&value.unwrap_or_default())).join(",")
}

/// A cell as spreadsheets read it: text, on one line. They take what begins like a formula for one, also
/// within quotes and after spaces, so that gets an apostrophe before it.
fn cell(text: &str) -> String {
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let text =
        text.replace(['\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ");
    let unseen = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let formula =
        text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || unseen(c));
    let apostrophe = if formula.starts_with(FORMULA) { "'" } else { "" };
    if apostrophe.is_empty() && !text.contains([',', '"', ';', '\'', ' ']) {
        return text;
    }
    format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_formula_is_text() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r\n=1",
            " =1",
            "＝1",
            "\u{feff}=1",
            "=HYPERLINK(\"http://x\",\"y\")",
            "\u{1b}=1",
        ] {
            let cell = cell(formula);
            assert!(cell.starts_with("\"'"), "{formula:?} became {cell:?}");
            assert!(!cell.contains(['\n', '\r', '\t']));
        }
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,b \"c\"\nd"), "\"a,b \"\"c\"\" d\"");
    }
}
