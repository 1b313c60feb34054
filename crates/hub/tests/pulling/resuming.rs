//! What has come is kept and continued; what two processes do at once does no harm.

use std::fs;
use std::thread;
use std::time::Duration;

use glassbox_hub::HubError;
use glassbox_testkit::Twist;

use crate::desk::{Desk, Notes, WEIGHTS, content};

#[test]
fn a_connection_that_breaks_is_continued_where_it_broke() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { cut_after: Some(250_000), ..Twist::default() });
    let (_, notes) = desk.succeeds();
    assert_eq!(desk.ranges(), [None, Some("bytes=250000-".to_owned())]);
    assert!(
        notes.remarks[0].contains("org/name: model.safetensors: ") && notes.remarks[0].contains("trying again in 0.0 s"),
        "{:?}",
        notes.remarks
    );
    assert_eq!(notes.advanced, 600_002);
}

#[test]
fn a_server_that_falls_silent_is_asked_again() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { stall: Some((100_000, Duration::from_secs(3))), ..Twist::default() });
    let (_, notes) = desk.succeeds();
    assert_eq!(desk.ranges(), [None, Some("bytes=100000-".to_owned())]);
    assert!(notes.remarks[0].contains("timeout"), "{:?}", notes.remarks);
}

#[test]
fn an_interrupted_pull_goes_on_where_it_stopped() {
    let desk = Desk::new();
    let mut notes = Notes { stop_after: Some(200_000), ..Notes::default() };
    let error = desk.pull_watched("org/name", &mut notes).expect_err("interrupted");
    assert!(matches!(error, HubError::Interrupted), "{error}");
    let kept = fs::metadata(desk.incomplete(WEIGHTS)).expect("kept").len();
    assert!((200_000 - 2..600_000).contains(&kept), "{kept}");
    let (_, notes) = desk.succeeds();
    assert_eq!(notes.begun, [(WEIGHTS.to_owned(), kept)]);
    assert_eq!(desk.ranges().last(), Some(&Some(format!("bytes={kept}-"))));
}

#[test]
fn a_server_that_knows_no_ranges_sends_all_again() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { cut_after: Some(250_000), ..Twist::default() });
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { ignores_range: true, ..Twist::default() });
    let (_, notes) = desk.succeeds();
    assert_eq!(notes.advanced, 600_002, "what is thrown away is taken back");
}

#[test]
fn a_server_that_sends_another_range_is_not_believed() {
    let desk = Desk::new();
    for range in ["bytes 100-599999/600000", "bytes 250000-599999/700000", "nonsense"] {
        let _ = fs::remove_dir_all(desk.repository());
        desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { cut_after: Some(250_000), ..Twist::default() });
        desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist::default().with("Content-Range", range));
        desk.succeeds();
        assert_eq!(desk.ranges().last(), Some(&None), "{range}: from the start");
    }
}

#[test]
fn an_incomplete_file_that_is_longer_than_the_whole_is_thrown_away() {
    let desk = Desk::new();
    fs::create_dir_all(desk.repository().join("blobs")).expect("made");
    fs::write(desk.incomplete(WEIGHTS), content(700_000)).expect("written");
    desk.succeeds();
    assert_eq!(desk.ranges(), [None]);
}

#[test]
fn an_incomplete_file_that_is_whole_is_only_checked() {
    let desk = Desk::new();
    fs::create_dir_all(desk.repository().join("blobs")).expect("made");
    fs::write(desk.incomplete(WEIGHTS), content(600_000)).expect("written");
    desk.succeeds();
    assert!(desk.ranges().is_empty());
}

#[test]
fn a_damaged_rest_of_an_earlier_attempt_is_noticed_and_fetched_anew() {
    let desk = Desk::new();
    fs::create_dir_all(desk.repository().join("blobs")).expect("made");
    fs::write(desk.incomplete(WEIGHTS), vec![0; 1000]).expect("written");
    let (_, notes) = desk.succeeds();
    assert_eq!(desk.ranges(), [Some("bytes=1000-".to_owned()), None]);
    assert!(notes.remarks[0].contains("fetching it again from the start"), "{:?}", notes.remarks);
}

#[test]
fn content_that_changed_since_the_last_attempt_is_another_file() {
    let desk = Desk::new();
    fs::create_dir_all(desk.repository().join("blobs")).expect("made");
    fs::write(desk.incomplete(WEIGHTS), vec![7; 1000]).expect("written");
    let old = desk.incomplete(WEIGHTS);
    desk.hub.put_large(WEIGHTS, content(5000));
    let pulled = desk.pull("org/name").expect("a model");
    assert_eq!(fs::read(pulled.path.join(WEIGHTS)).expect("readable"), content(5000));
    assert_eq!(fs::read(old).expect("kept for whoever wants the old one").len(), 1000);
}

#[test]
fn content_that_changes_during_the_pull_is_refused() {
    let desk = Desk::new();
    let path = format!("GET /org/name/resolve/{}/{WEIGHTS}", crate::desk::COMMIT);
    desk.hub.twist(&path, Twist::default().with("X-Linked-Etag", format!("\"{}\"", "a".repeat(64))));
    desk.refuses(&["model.safetensors: wanted the content", "has changed in the meantime; do it again"]);
    desk.succeeds();
}

#[test]
fn two_pulls_at_once_fetch_the_weights_once() {
    let desk = Desk::new();
    desk.hub.twist(&format!("GET /{WEIGHTS}"), Twist { stall: Some((100_000, Duration::from_millis(250))), ..Twist::default() });
    thread::scope(|scope| {
        let both = [scope.spawn(|| desk.succeeds()), scope.spawn(|| desk.succeeds())];
        let notes: Vec<Notes> = both.into_iter().map(|pull| pull.join().expect("no panic").1).collect();
        assert!(notes.iter().flat_map(|notes| &notes.remarks).any(|remark| remark.contains("another process is fetching")));
    });
    assert_eq!(desk.ranges(), [None, Some("bytes=100000-".to_owned())]);
}

#[test]
fn whoever_waits_for_another_process_can_be_interrupted() {
    let desk = Desk::new();
    let locks = desk.cache().join(".locks/models--org--name");
    fs::create_dir_all(&locks).expect("made");
    let lock = fs::File::create(locks.join(format!("{}.lock", desk.hub.tag(WEIGHTS)))).expect("made");
    lock.lock().expect("locked");
    let mut notes = Notes { stop_after: Some(2), ..Notes::default() };
    let error = desk.pull_watched("org/name", &mut notes).expect_err("interrupted");
    assert!(matches!(error, HubError::Interrupted), "{error}");
}
