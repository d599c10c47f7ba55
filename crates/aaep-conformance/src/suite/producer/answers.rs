//! What replies were answered with: replies that are ignored have to look like one that counts.

use aaep_transport::client::FullResponse;
use http::{HeaderMap, StatusCode};

use crate::suite::report::Report;
use crate::suite::wire::Line;

/// What a reply is called that counts.
pub(super) const ACCEPTED: &str = "accepted";

/// One answer, and what it was an answer to.
struct Answered {
    what: &'static str,
    /// Where the reply was posted: each place may answer in its own way.
    door: &'static str,
    answer: FullResponse,
}

/// Every answer to a well-formed reply, whatever became of the reply.
#[derive(Default)]
pub(super) struct Answers {
    kept: Vec<Answered>,
    /// What was said, with an answer or without.
    said: Vec<&'static str>,
}

/// What somebody outside sees of an answer. `Date` may differ, and so may the id of the request, as long as
/// all ids look alike.
#[derive(PartialEq, Eq)]
struct Shape {
    status: StatusCode,
    headers: HeaderMap,
    id_length: Option<usize>,
    body: bytes::Bytes,
}

impl Shape {
    fn of(answer: &FullResponse) -> Self {
        let mut headers = answer.headers.clone();
        headers.remove(http::header::DATE);
        let id_length = headers.remove("x-request-id").map(|id| id.len());
        Self { status: answer.status, headers, id_length, body: answer.body.clone() }
    }
}

impl Answers {
    /// Keeps what a reply was answered with. Where a transport has no answers, there is nothing to keep.
    pub(super) fn keep(&mut self, what: &'static str, line: &Line, answer: Option<FullResponse>) {
        self.said.push(what);
        self.kept.extend(answer.map(|answer| Answered { what, door: line.door(), answer }));
    }

    /// Whether a reply that counted was said, and one that did not.
    pub(super) fn are_enough(&self) -> bool {
        self.said.contains(&ACCEPTED) && self.said.iter().any(|what| *what != ACCEPTED)
    }

    /// Compares each answer with the one to a reply that counted at the same door.
    pub(super) fn compare(&self, report: &mut Report) {
        for accepted in self.kept.iter().filter(|it| it.what == ACCEPTED) {
            let usual = Shape::of(&accepted.answer);
            for other in self.kept.iter().filter(|it| it.door == accepted.door) {
                let same = Shape::of(&other.answer) == usual;
                let why = format!(
                    "A reply is answered in another way than one that counts: {}.",
                    other.what
                );
                report.holds("indistinguishable", same, why);
            }
        }
    }
}
