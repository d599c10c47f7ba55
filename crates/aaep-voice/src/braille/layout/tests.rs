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
    board.command(&Command::Asked(1));
    board.ask(grave(1));
    board.view(0);
    board
}

fn say(board: &mut Board, class: Class, text: &str, now: u64) {
    board.command(&Command::Say(Utterance::new(class).printed(text.into())));
    board.view(now);
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
    board.command(&Command::Settled(1));
    assert!(board.view(3_600_000).unwrap().starts_with("  Request 9: accepted"));
}

#[test]
fn outcomes_come_before_the_next_question_and_messages_stay_until_another_comes() {
    let mut board = board(40);
    board.command(&Command::Asked(2));
    board.ask(Question { number: 2, text: "Second?".into(), ..grave(2) });
    board.command(&Command::Settled(1));
    say(&mut board, Class::Outcome, "Request 1: accepted.", 1_000);
    // The next question is there at once; the outcome is not lost.
    assert!(board.view(1_000).unwrap().starts_with("? Second?"));
    board.command(&Command::Settled(2));
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
    board.command(&Command::Say(Utterance::new(Class::Request).printed("Again.".into())));
    assert!(board.view(1).unwrap().starts_with("? “Transfer"));
    board.command(&Command::Settled(1));
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
        board.ask(Question { number: 1, text: words, answers, second_step: Some(sure) });
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
        board.command(&Command::Asked(1));
        board.ask(Question { text: text.into(), second_step: None, ..grave(1) });
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

/// What the display shows, without the blanks behind it.
#[track_caller]
fn shows(board: &mut Board, now: u64, text: &str) {
    assert_eq!(board.view(now).unwrap_or_default().trim_end(), text);
}

#[test]
fn an_answer_to_a_key_stands_in_front_of_the_question_which_is_back_at_the_same_window() {
    let mut board = board(40);
    board.key(Key::Right, 100);
    shows(&mut board, 100, "? High risk.  no  yes");
    say(&mut board, Class::Feedback, "To be sure: type yes and press Enter.", 10_000);
    shows(&mut board, 10_000, "? To be sure: type yes and press Enter.");
    assert_eq!(board.next_deadline(), Some(13_000));
    shows(&mut board, 12_999, "? To be sure: type yes and press Enter.");
    shows(&mut board, 13_000, "? High risk.  no  yes");
    // What is pressed as it comes back was meant for what stood there.
    assert_eq!(press(&mut board, "no", 13_499), None);
    assert!(press(&mut board, "no", 13_500).is_some());
}

#[test]
fn an_error_and_a_warning_are_felt_once_the_question_was_there_for_a_while() {
    let mut board = board(40);
    say(&mut board, Class::Error, "The hub is gone.", 1_000);
    say(&mut board, Class::Notice, "Request 2 waits too.", 1_000);
    shows(&mut board, 2_999, "? “Transfer 20 euros to Ann.” No undo.");
    assert_eq!(board.next_deadline(), Some(3_000));
    shows(&mut board, 3_000, "? The hub is gone.");
    shows(&mut board, 6_000, "? “Transfer 20 euros to Ann.” No undo.");
    shows(&mut board, 9_000, "? Request 2 waits too.");
    board.key(Key::Right, 9_500);
    shows(&mut board, 9_500, "? “Transfer 20 euros to Ann.” No undo.");
    assert_eq!(board.next_deadline(), None);
    // A routing key leads back to the question, and answers nothing.
    say(&mut board, Class::Feedback, "Everything about it, at some length.", 20_000);
    let more = Utterance::new(Class::Feedback).of_request(1).printed("And more.".into());
    board.announcer.push(more);
    shows(&mut board, 20_000, "? Everything about it, at some length.");
    assert_eq!(board.key(Key::Routing(20), 20_100), None);
    shows(&mut board, 20_100, "? “Transfer 20 euros to Ann.” No undo.");
}

#[test]
fn a_flood_of_long_errors_does_not_keep_the_question_away() {
    let mut board = board(20);
    for at in 0..50 {
        say(&mut board, Class::Error, &"It failed again. ".repeat(40), at);
        say(&mut board, Class::Outcome, "Request 9: accepted.", at);
    }
    let mut question = 0;
    for second in 1..600 {
        let view = board.view(second * 1_000).unwrap();
        question += usize::from(view.contains("“Transfer"));
        assert!(!view.contains("accepted"), "an outcome waits");
    }
    assert!(question >= 600 / 6, "the question was there for {question} of 600 seconds");
}

#[test]
fn what_is_panned_is_not_taken_away_and_a_new_question_does_not_wait_for_it() {
    let mut board = board(20);
    let help = "One and two and three. Four and five and six. Seven and eight.";
    say(&mut board, Class::Feedback, help, 5_000);
    for second in 5..60 {
        let at = second * 1_000;
        board.key(if second % 2 == 0 { Key::Left } else { Key::Right }, at);
        assert!(!board.view(at).unwrap().contains("Transfer"), "it is being read");
    }
    // Another key was pressed.
    say(&mut board, Class::Feedback, "No agent is at work.", 61_000);
    shows(&mut board, 61_000, "? No agent is at");
    let mut board = Board::new(20, 500);
    say(&mut board, Class::Feedback, help, 0);
    board.ask(grave(1));
    shows(&mut board, 2_999, "? One and two and");
    shows(&mut board, 3_000, "? “Transfer 20 euros");
}

#[test]
fn a_question_takes_the_place_of_chatter_at_once_and_that_comes_back_after_it() {
    let mut board = Board::new(40, 500);
    say(&mut board, Class::Text, "Once there was a cat.", 0);
    shows(&mut board, 10, "  Once there was a cat.");
    board.command(&Command::Asked(1));
    board.ask(grave(1));
    shows(&mut board, 20, "? “Transfer 20 euros to Ann.” No undo.");
    board.command(&Command::Settled(1));
    shows(&mut board, 30, "  Once there was a cat.");
}

#[test]
fn what_happens_to_another_question_moves_nobody() {
    let mut board = board(40);
    board.command(&Command::Asked(2));
    board.ask(Question { number: 2, text: "Second?".into(), ..grave(2) });
    board.key(Key::Last, 10);
    shows(&mut board, 10, "? High risk.  no  yes");
    board.ask(grave(1));
    board.focus(1);
    board.command(&Command::Settled(2));
    shows(&mut board, 20, "? High risk.  no  yes");
    assert_eq!(press(&mut board, "yes", 600), None);
    shows(&mut board, 600, "? Cannot be undone. Sure?  no  yes");
}

#[test]
fn the_question_that_is_answered_by_keys_is_the_one_on_the_display() {
    let mut board = board(40);
    board.command(&Command::Asked(2));
    board.ask(Question { number: 2, text: "Second?".into(), ..grave(2) });
    board.key(Key::Last, 10);
    board.focus(2);
    shows(&mut board, 10_000, "? Second?  no  yes");
    assert_eq!(press(&mut board, "no", 10_499), None, "it has just come");
    let no = Pressed { number: 2, reply: Reply::No, certain: false };
    assert_eq!(press(&mut board, "no", 10_500), Some(no));
    // In the second step of one, the other one begins at its beginning.
    press(&mut board, "yes", 10_500);
    board.focus(1);
    shows(&mut board, 10_600, "? “Transfer 20 euros to Ann.” No undo.");
    board.focus(7);
    shows(&mut board, 10_600, "? “Transfer 20 euros to Ann.” No undo.");
}
