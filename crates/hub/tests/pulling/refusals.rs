//! What the hub may answer instead of a file, and where the token goes.

use glassbox_hub::HubError;
use glassbox_testkit::Twist;

use crate::desk::{COMMIT, Desk, WEIGHTS};

#[test]
fn every_refusal_says_what_to_do() {
    let check = |desk: Desk, part: &str, twist: Twist, words: &[&str]| {
        desk.hub.twist(part, twist);
        let error = desk.refuses(words);
        assert!(matches!(error, HubError::Refused(_)), "{error}");
        assert!(!error.to_string().contains("hf_secret"), "{error}");
    };
    let gated = || Twist::status(403).with("X-Error-Code", "GatedRepo").with("X-Error-Message", "Access to model org/name is restricted");
    check(Desk::new(), "/api/", Twist::status(401), &["org/name: wanted", "no token", "set HF_TOKEN"]);
    check(Desk::new().with_token(), "/api/", Twist::status(401), &["that the token opens", "expired"]);
    check(
        Desk::new(),
        &format!("HEAD /org/name/resolve/{COMMIT}/{WEIGHTS}"),
        gated(),
        &["model.safetensors", "gated", "is restricted", "accept its terms"],
    );
    check(Desk::new(), "/api/", Twist::status(403), &["no permission", "status 403"]);
    check(
        Desk::new(),
        "/api/",
        Twist::status(404).with("X-Error-Code", "RepoNotFound"),
        &["no repository of this name", "check the spelling"],
    );
    check(Desk::new(), "/api/", Twist::status(404).with("X-Error-Code", "RevisionNotFound"), &["no such revision", "after `@`"]);
    check(Desk::new(), "HEAD", Twist::status(404).with("X-Error-Code", "EntryNotFound"), &["config.json", "no such file"]);
    check(Desk::new(), "/api/", Twist::status(418), &["status 418", "HF_ENDPOINT"]);
}

#[test]
fn a_server_in_trouble_is_asked_again_as_it_wishes() {
    let desk = Desk::new();
    desk.hub.twist("/api/", Twist::status(503));
    desk.hub.twist("/api/", Twist::status(429).with("Retry-After", "0"));
    desk.hub.twist("HEAD", Twist::status(500));
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist::status(502));
    let (_, notes) = desk.succeeds();
    let remarks: Vec<&str> = notes.remarks.iter().map(String::as_str).collect();
    assert_eq!(remarks[0], "org/name: status 503; trying again in 0.0 s");
    assert_eq!(remarks[1], "org/name: status 429; trying again in 0.0 s");
    assert_eq!(remarks.len(), 4, "{remarks:?}");
}

#[test]
fn a_server_that_stays_in_trouble_is_given_up() {
    let desk = Desk::new();
    (0..3).for_each(|_| desk.hub.twist("/api/", Twist::status(503)));
    let error = desk.refuses(&["status 503, 3 times in a row", "what has come is kept"]);
    assert!(matches!(error, HubError::Network(_)));
    assert_eq!(desk.hub.asked().len(), 3);
}

#[test]
fn a_wait_of_hours_is_not_waited_for() {
    let desk = Desk::new();
    desk.hub.twist("/api/", Twist::status(429).with("Retry-After", "7200"));
    desk.refuses(&["status 429 and the request to wait 7200 s", "try again after that time"]);
}

#[test]
fn nobody_at_the_address_is_reported_with_what_to_check() {
    let mut desk = Desk::new();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("just bound");
    desk.settings.endpoint = format!("http://{free}");
    let error = desk.refuses(&["org/name: wanted an answer", "3 times in a row", "HF_ENDPOINT"]);
    assert!(matches!(error, HubError::Network(_)));
}

#[test]
fn the_token_goes_to_the_endpoint_and_nowhere_else() {
    let desk = Desk::new().with_token();
    desk.succeeds();
    let asked = desk.hub.asked();
    assert!(asked.iter().any(|asked| asked.store));
    for asked in asked {
        assert_eq!(asked.header("authorization"), (!asked.store).then_some("Bearer hf_secret"), "{asked:?}");
    }
}

#[test]
fn without_a_token_none_is_sent() {
    let desk = Desk::new();
    desk.succeeds();
    assert!(desk.hub.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn redirects_inside_the_hub_are_followed_with_the_token() {
    let desk = Desk::new().with_token();
    desk.hub.twist("/api/models/old/name/", Twist::status(307).with("Location", "/api/models/org/name/revision/main"));
    desk.pull("old/name").expect("a renamed repository");
    let moved = desk.hub.asked().into_iter().find(|asked| asked.path == "/api/models/org/name/revision/main").expect("followed");
    assert_eq!(moved.header("authorization"), Some("Bearer hf_secret"));
}

#[test]
fn redirects_in_a_circle_or_out_of_the_web_are_refused() {
    let desk = Desk::new();
    (0..20).for_each(|_| desk.hub.twist("/api/", Twist::status(302).with("Location", "/api/models/again")));
    desk.refuses(&["10 redirects in a row"]);
    let desk = Desk::new();
    desk.hub.twist("/api/", Twist::status(302).with("Location", "file:///etc/passwd"));
    desk.refuses(&["wanted a redirect to an address of the web, found `file:///etc/passwd`"]);
}

#[test]
fn a_page_instead_of_a_listing_is_refused() {
    let desk = Desk::new();
    desk.hub.twist("/api/", Twist { body: Some(b"<html>log in to the network</html>".to_vec()), ..Twist::default() });
    desk.refuses(&["list of files as JSON", "HF_ENDPOINT"]);
}
