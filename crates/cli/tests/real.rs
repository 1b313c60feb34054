//! The command line on a real encoder: `make models`, then `make test-real`.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

/// A batch of ragged lengths as sentence-transformers reads it: `fixtures/real/minilm.py`.
fn golden() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../fixtures/real/minilm.json")).expect("the script writes JSON")
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

#[test]
fn all_minilm_l6_v2_gives_the_embeddings_of_sentence_transformers_from_the_letters_on() {
    let folder = std::env::var("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder of `make models`");
    // An argument of a command holds no zero byte, and so that text is left to the tests of the tokenizer.
    let cases: Vec<Value> = golden().into_iter().filter(|case| !case["text"].as_str().expect("a text").contains('\0')).collect();
    let mut command = Command::new(cargo_bin!("glassbox"));
    command.args(["embed", &format!("{folder}/all-minilm-l6-v2"), "--json"]);
    let output = command.args(cases.iter().map(|case| case["text"].as_str().expect("a text"))).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let mut farthest = 0.0_f64;
    for (index, (found, wanted)) in document["embeddings"].as_array().expect("a list").iter().zip(&cases).enumerate() {
        let text = &wanted["text"];
        assert_eq!((&found["ids"], &found["left_out"]), (&wanted["ids"], &wanted["left_out"]), "{text}");
        let cut = format!("text {} is cut", index + 1);
        assert_eq!(said.contains(&cut), wanted["left_out"] != 0, "{text}: {said}");
        let far = numbers(&found["vector"]).into_iter().zip(numbers(&wanted["embedding"])).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(far <= 1e-5, "{text}: {far:e} from the reference");
        farthest = farthest.max(far);
    }
    assert_eq!(cases.len(), 12);
    println!("largest distance of a number of an embedding: {farthest:e}");
}
