use super::*;
use crate::utterance::{Class, Utterance};
use proptest::prelude::*;

fn label(text: &str, reply: Reply) -> Label {
    Label { text: text.into(), reply }
}

fn grave(number: u32) -> Question {
    Question {
        number,
        text: "“Transfer 20 euros to Ann.” No undo. High risk.".into(),
        answers: vec![label("no", Reply::No), label("yes", Reply::Yes)],
        second_step: Some("Cannot be undone. Sure?".into()),
    }
}

fn board(cells: usize) -> Board {
    let mut board = Board::new(cells, 500);
    board.command(&Command::Asked(1), 0);
    board.ask(grave(1), 0);
    board
}

fn say(board: &mut Board, class: Class, text: &str, now: u64) {
    board.command(&Command::Say(Utterance::new(class).printed(text.into())), now);
}

/// Everything that can be read by panning.
fn pages(board: &mut Board) -> Vec<String> {
    let mut pages: Vec<String> = Vec::new();
    board.key(Key::First, 0);
    loop {
        pages.push(board.view(0).unwrap());
        let window = board.window;
        board.key(Key::Right, 0);
        if board.window == window {
            return pages;
        }
    }
}

/// Presses the routing key above the first letter of this, wherever it is.
fn press(board: &mut Board, text: &str, now: u64) -> Option<Pressed> {
    board.key(Key::Last, now);
    loop {
        let view = board.view(now).unwrap();
        if let Some(at) = view.rfind(text) {
            return board.key(Key::Routing(view[..at].chars().count()), now);
        }
        assert!(board.window > 0, "{text:?} is nowhere");
        board.key(Key::Left, now);
    }
}

#[test]
fn a_question_fits_fourteen_twenty_forty_and_eighty_cells() {
    assert_eq!(
        pages(&mut board(14)),
        [
            "? “Transfer 20",
            "? euros to    ",
            "? Ann.” No    ",
            "? undo. High  ",
            "? risk.  no   ",
            "? yes         "
        ]
    );
    assert_eq!(
        pages(&mut board(20)),
        [
            "? “Transfer 20 euros",
            "? to Ann.” No undo. ",
            "? High risk.  no    ",
            "? yes               "
        ]
    );
    assert_eq!(
        pages(&mut board(40)),
        ["? “Transfer 20 euros to Ann.” No undo.  ", "? High risk.  no  yes                   "]
    );
    let eighty = pages(&mut board(80));
    assert_eq!(eighty.len(), 1);
    assert_eq!(eighty[0].trim_end(), "? “Transfer 20 euros to Ann.” No undo. High risk.  no  yes");
}

#[test]
fn one_routing_key_says_no_and_a_grave_yes_takes_two_steps() {
    for cells in [14, 20, 40, 80] {
        let no = Some(Pressed { number: 1, reply: Reply::No, certain: false });
        assert_eq!(press(&mut board(cells), "no", 1_000), no, "{cells}");
        let mut board = board(cells);
        assert_eq!(press(&mut board, "yes", 1_000), None);
        assert!(board.view(1_000).unwrap().starts_with("? Cannot be"));
        assert_eq!(press(&mut board, "yes", 1_200), None, "too soon after the first step");
        let yes = press(&mut board, "yes", 2_000);
        assert_eq!(yes, Some(Pressed { number: 1, reply: Reply::Yes, certain: true }), "{cells}");
    }
}

#[test]
fn a_routing_key_beside_the_answers_or_too_soon_answers_nothing() {
    let mut board = board(40);
    for cell in 0..40 {
        assert_eq!(board.key(Key::Routing(cell), 10_000), None, "the first window has no answer");
    }
    board.key(Key::Last, 10_000);
    let mut early = self::board(40);
    assert_eq!(press(&mut early, "no", 499), None);
    assert!(press(&mut early, "no", 500).is_some());
}

#[test]
fn a_question_stays_until_it_is_settled_and_chatter_does_not_move_it() {
    let mut board = board(40);
    for number in 0..100 {
        say(&mut board, Class::Text, &format!("Sentence {number}."), number * 100);
        say(&mut board, Class::Outcome, &format!("Request 9: accepted {number}."), number * 100);
    }
    assert!(board.view(3_600_000).unwrap().starts_with("? “Transfer"));
    board.command(&Command::Settled(1), 3_600_000);
    assert!(board.view(3_600_000).unwrap().starts_with("  Request 9: accepted"));
}

#[test]
fn outcomes_come_before_the_next_question_and_messages_stay_until_another_comes() {
    let mut board = board(40);
    board.command(&Command::Asked(2), 0);
    board.ask(Question { number: 2, text: "Second?".into(), ..grave(2) }, 0);
    board.command(&Command::Settled(1), 1_000);
    say(&mut board, Class::Outcome, "Request 1: accepted.", 1_000);
    // The next question is there at once; the outcome is not lost.
    assert!(board.view(1_000).unwrap().starts_with("? Second?"));
    board.command(&Command::Settled(2), 2_000);
    assert!(board.view(2_000).unwrap().starts_with("  Request 1: accepted."));
    assert!(board.view(1_000_000).unwrap().starts_with("  Request 1: accepted."));
    say(&mut board, Class::End, "Done.", 1_000_000);
    assert!(board.view(1_000_000).unwrap().starts_with("  Done."));
}

#[test]
fn the_display_is_given_back_when_it_is_dismissed_and_taken_for_what_is_new() {
    let mut board = board(40);
    board.key(Key::Dismiss, 0);
    assert_eq!(board.view(0), None);
    board.command(&Command::Say(Utterance::new(Class::Request).printed("Again.".into())), 1);
    assert!(board.view(1).unwrap().starts_with("? “Transfer"));
    board.command(&Command::Settled(1), 2);
    assert_eq!(board.view(2), None, "nothing is left to read");
    say(&mut board, Class::End, "Done.", 3);
    assert!(board.view(3).is_some());
    board.key(Key::Dismiss, 4);
    assert_eq!(board.view(5), None);
}

#[test]
fn a_display_that_changes_its_size_shows_the_same_from_the_beginning() {
    let mut board = board(40);
    board.key(Key::Last, 0);
    board.resize(20, 5);
    assert_eq!(board.view(5).unwrap(), "? “Transfer 20 euros");
    board.resize(0, 6);
    assert_eq!(board.view(6), None);
}

proptest! {
    /// On any display, with any labels, no cell pressed twice makes a grave yes certain, and every
    /// view has as many characters as there are cells.
    #[test]
    fn the_same_key_pressed_twice_never_makes_a_yes_certain(
        cells in MIN_CELLS..90, words in "[a-z ]{0,60}", sure in "[a-z ]{0,40}",
        no in "[a-z]{1,9}", yes in "[a-z]{1,9}", cell in 0..90usize, window in 0..12usize,
    ) {
        let mut board = Board::new(cells, 0);
        let answers = vec![label(&no, Reply::No), label(&yes, Reply::Yes)];
        board.ask(Question { number: 1, text: words, answers, second_step: Some(sure) }, 0);
        for _ in 0..window {
            board.key(Key::Right, 1);
        }
        let first = board.key(Key::Routing(cell), 1);
        prop_assert!(first.is_none_or(|pressed| !pressed.certain));
        for _ in 0..12 {
            prop_assert_eq!(board.view(1).unwrap().chars().count(), cells);
            let again = board.key(Key::Routing(cell), 1);
            prop_assert!(again.is_none_or(|pressed| !pressed.certain), "{:?}", again);
            board.key(Key::Right, 1);
        }
    }
}

#[test]
fn a_question_of_any_length_and_kind_is_panned_whole_and_answered() {
    let long = "word ".repeat(16_384 / 5) + "ends";
    let texts = [
        long.as_str(),
        "Send 👩\u{200d}🚀👍🏽 to Ann 🇳🇬",
        "x\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301} marks",
        "tab\tbreak\r\nnext\u{85}line\u{2028}end",
        "احذف الملف 20 ثم توقف",
        "<speak>.</speak> . .. STOP ALL",
    ];
    for (text, cells) in texts.iter().flat_map(|text| [14, 20, 40, 80].map(|cells| (*text, cells)))
    {
        let mut board = Board::new(cells, 0);
        board.command(&Command::Asked(1), 0);
        board.ask(Question { text: text.into(), second_step: None, ..grave(1) }, 0);
        let pages = pages(&mut board);
        // The first cells tell that it waits.
        let read: String = pages.iter().flat_map(|page| page.chars().skip(STATUS_CELLS)).collect();
        let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(without_spaces(&read), without_spaces(text) + "noyes", "{cells} cells");
        assert!(pages.iter().all(|page| page.chars().count() <= cells), "{cells} cells");
        let no = Pressed { number: 1, reply: Reply::No, certain: false };
        assert_eq!(press(&mut board, "no", 0), Some(no), "{cells} cells");
    }
}
