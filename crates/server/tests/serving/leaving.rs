use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{House, settings};

const TEXT: &str = "/v1/completions";

/// An answer that takes long: at this temperature the end token is as rare as any other.
fn long(word: &str, stream: bool) -> Value {
    json!({"prompt": word, "max_tokens": 400, "temperature": 1000, "seed": 1, "stream": stream})
}

/// BL-72: work ends with the client that wanted it.
#[test]
fn twenty_clients_that_leave_hold_no_seat() {
    let house = House::slow(settings());
    std::thread::scope(|scope| {
        for client in 0..20 {
            let house = &house;
            scope.spawn(move || house.post_and_leave(TEXT, &long("Once", client % 2 == 0), Duration::from_millis(200)));
        }
    });
    assert!(house.comes_to(0, Duration::from_secs(20)), "{}", house.get("/health").body);
    let honest = house.post(TEXT, &json!({"prompt": "Once", "max_tokens": 2, "temperature": 0}));
    assert_eq!((honest.status, honest.json()["usage"]["completion_tokens"].as_u64()), (200, Some(2)));
    assert_eq!(house.get("/health").status, 200);
}

#[test]
fn beyond_the_queue_requests_are_refused_at_once_and_the_others_are_served() {
    let house = House::slow(glassbox_server::Settings { slots: 1, waiting: 2, ..settings() });
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| house.post_and_leave(TEXT, &long("Once", false), Duration::from_secs(3)));
        assert!(house.comes_to(1, Duration::from_secs(3)));
        let three = house.post(TEXT, &json!({"prompt": "Twice", "n": 3, "max_tokens": 1}));
        assert_eq!(three.status, 429, "{}", three.body);
        assert!(three.head.contains("retry-after: 1"), "{}", three.head);
        let two = house.post(TEXT, &json!({"prompt": "Twice", "n": 2, "max_tokens": 1}));
        assert_eq!(two.status, 200, "what was refused has left the queue: {}", two.body);
        leaving.join().expect("it leaves");
    });
    assert!(house.comes_to(0, Duration::from_secs(20)));
}
