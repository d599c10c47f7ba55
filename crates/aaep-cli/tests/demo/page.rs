//! The address that the demo prints, and what its code is worth.

use crate::demo;
use crate::support::*;

// covers: S4, S5
#[test]
fn the_code_in_the_demos_address_is_worth_a_token_once_and_its_answers_count() {
    run(async {
        let hub = demo(&["--ephemeral"]);
        let greetings = hub.greetings();
        let page = greetings.iter().find_map(|line| line.strip_prefix("Page: ")).unwrap();
        let (address, code) = page.split_once("#code=").unwrap();
        assert_eq!(address, format!("http://{}/", hub.address()));
        let body = json!({ "code": code }).to_string();
        let answer = hub.anonymous().post("page/token", body.clone()).await.unwrap();
        assert_eq!(answer.status.as_u16(), 200);
        let given: Value = serde_json::from_slice(&answer.body).unwrap();
        let token = text(&given, "token");
        assert_eq!(hub.anonymous().post("page/token", body).await.unwrap().status.as_u16(), 401);

        let mut ear = Ear::subscribe(client(&hub.base(), Some(token))).await;
        crate::say(&hub, "book a room").await;
        loop {
            let event = ear.next().await;
            match text(&event, "type") {
                "aaep:agent.awaiting.confirmation" => ear.decide(&event, "accept").await,
                "aaep:agent.tool.invoked" => break,
                _ => {}
            }
        }
        // Nor is it anywhere in what the demo printed.
        assert!(hub.greetings().iter().all(|line| !line.contains(token)));
    });
}

// covers: S5
#[test]
fn hundreds_of_wrong_codes_do_not_take_the_right_one_away() {
    run(async {
        let hub = demo(&["--ephemeral"]);
        let greetings = hub.greetings();
        let code = greetings.iter().find_map(|line| line.split_once("#code=")).unwrap().1;
        // Somebody guesses from this machine, too, and waits for no answer.
        let guesses: Vec<Raw> = (0..300)
            .map(|number| {
                let mut raw = Raw::connect(&hub);
                raw.send(raw.post("page/token", None, &format!("{{\"code\":\"{number}\"}}")));
                raw
            })
            .collect();
        let body = json!({ "code": code }).to_string();
        let answer = soon("the token", hub.anonymous().post("page/token", body)).await.unwrap();
        assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
        drop(guesses);
    });
}
