//! Lines of mixed direction, as they are spoken, shown on braille cells and printed: in the order of
//! reading, without marks that a voice would say or a display would show.

use aaep_subscriber::words::Words;

use crate::listen::talk::stories::{Story, mild, with};
use crate::listen::talk::{Output, Talk};

/// Marks that turn the direction of text.
fn is_mark(sign: char) -> bool {
    matches!(sign, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn spoken(talk: &mut Talk) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    while let Some(output) = talk.poll() {
        if let Output::Say(utterance) = output {
            let language = |part: &aaep_voice::utterance::Part| {
                part.language.as_deref().unwrap_or_default().to_owned()
            };
            parts.extend(utterance.parts.iter().map(|part| (language(part), part.text.clone())));
        }
    }
    parts
}

// covers: L7
#[test]
fn english_in_arabic_and_arabic_in_english_keep_the_order_of_reading() {
    for (ours, theirs, action) in [
        ("ar", "en", "Delete the file report.pdf (2 MB) now"),
        ("en", "ar", "احذف الملف report.pdf الآن"),
        ("hi", "en", "Send 20 EUR to Ann"),
    ] {
        let mut story = Story::in_language(ours, |_| {});
        let mut request = mild(1, action);
        request.language = Some(theirs.into());
        let notification = aaep_subscriber::Notification::Asked(std::sync::Arc::new(request));
        story.talk.happened(&notification, 1);
        let parts = spoken(&mut story.talk);
        assert!(parts.iter().all(|(_, text)| !text.contains(is_mark)), "{parts:?}");
        // A full stop of ours is said with what stands before it.
        let is_action = |text: &str| text.strip_suffix(['.', '।']).unwrap_or(text) == action;
        assert!(parts.iter().any(|(tag, text)| tag == theirs && is_action(text)), "{parts:?}");
        assert_eq!(parts[0].0, ours, "{parts:?}");
        // The cells have the same characters in the same order: BRLTTY turns nothing around.
        let question = story.talk.on_display(1).unwrap();
        assert!(question.text.contains(action), "{}", question.text);
        assert!(!question.text.contains(is_mark), "{}", question.text);
        let (title, body) = story.talk.noted(1).unwrap();
        assert!(body.contains(action) && !title.contains(is_mark), "{title} {body}");
    }
}

// covers: L7, D34
#[test]
fn marks_that_an_agent_writes_to_turn_text_around_are_said_as_codes_everywhere() {
    let hidden = with(mild(1, "Delete \u{202e}fdp.exe\u{202c} now"), |_| {});
    let mut story = Story::in_language("ar", |_| {});
    story.talk.happened(&aaep_subscriber::Notification::Asked(std::sync::Arc::new(hidden)), 1);
    let parts = spoken(&mut story.talk);
    assert!(parts.iter().all(|(_, text)| !text.contains(is_mark)), "{parts:?}");
    assert!(parts.iter().any(|(_, text)| text.contains("U+202E")), "{parts:?}");
    let question = story.talk.on_display(1).unwrap();
    assert!(question.text.contains("U+202E") && !question.text.contains(is_mark), "{question:?}");
}

#[test]
fn every_language_asks_answers_and_helps_without_a_missing_word() {
    for (language, _) in Words::languages() {
        let mut story = Story::in_language(language, |_| {});
        story.asked(mild(1, "Go")).types("d").types("?").types("c").types("l").types("w");
        story.types("t").types("y").types("r").types("q");
        let heard = story.heard();
        for line in heard.lines() {
            let leaks = line.contains("terminal.") || line.contains(['{', '}']);
            assert!(!leaks, "{language}: {line}");
        }
        assert!(heard.contains("[reply 1: Accept]"), "{language}: {heard}");
    }
}
