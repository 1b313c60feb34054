use glassbox_record::Status;
use glassbox_report::{Lang, ReportError};

use crate::build::Building;
use crate::page;

fn html(building: &Building, lang: Lang) -> String {
    let page = building.build().load().expect("finished").html(lang).expect("drawn");
    page::check(&page);
    page
}

#[test]
fn every_part_is_on_the_page_in_both_languages() {
    for (lang, parts) in [
        (
            Lang::En,
            [
                "<html lang=\"en\">",
                "FAIL",
                "CANNOT-SAY",
                "INCONCLUSIVE",
                "All numbers",
                "accuracy, by plain",
                "<h4>all items</h4>",
                "<h4>en</h4>",
                "<h4>zh</h4>",
                "uniform baseline",
                "Wrong answers, and what the model read",
                "2 of 2 wrong answers are on this page",
                "2 of 4 heads are shown.",
                "Shown because: plain.",
                "Right answers, for comparison",
                "What was tested",
                "Not defined: plain.",
                "answered from here",
                "elsewhere",
            ],
        ),
        (
            Lang::ZhCn,
            [
                "<html lang=\"zh-CN\">",
                "未通过",
                "无法判断",
                "证据不足",
                "全部数据",
                "各位置的正确率",
                "<h4>全部样本</h4>",
                "<h4>英文</h4>",
                "<h4>中文</h4>",
                "均匀基准",
                "答错的样本，以及模型读了什么",
                "共 2 个错误回答，本页列出 2 个",
                "共 4 个注意力头，展示 2 个。",
                "展示原因：plain。",
                "答对的样本，供对照",
                "测试对象",
                "无定义：plain。",
                "答案出自此处",
                "其他",
            ],
        ),
    ] {
        let page = html(&Building::default(), lang);
        for part in parts {
            assert!(page.contains(part), "{lang:?}: `{part}`");
        }
    }
}

#[test]
fn a_wrong_answer_comes_with_a_sentence_that_describes_attention_and_claims_no_cause() {
    let page = html(&Building::default(), Lang::En);
    let sentence = "Mean over all layers, these rows gave document 2 (the right document) 5 % of their attention; \
                    the uniform baseline is 20 %. Among the documents document 3 got most: 40 %.";
    assert!(page.contains(sentence));
    assert!(page.contains("where attention went, not what caused the answer"));
    assert!(page.contains("<td class=\"cell o3\">45 % <small>(30)</small></td>"), "what lies between the parts is shown too");
    assert!(page.contains("<td class=\"cell u3\">5 % <small>(20)</small></td>"), "the right document is under its baseline");
    assert!(page.contains("&lt;1 %") || page.contains("&#60;1 %"), "a small share is not called nothing");
}

#[test]
fn five_hundred_watched_failures_fit_a_page_that_says_what_is_left_out() {
    let page = html(&Building { wrong: 500, tokens: 300, text: "三个字".to_owned(), ..Building::default() }, Lang::En);
    let shown: usize = page.matches("<details class=\"item\"").count();
    assert!(shown >= 10, "{shown}");
    assert!(page.contains("of 500 wrong answers are on this page, watched ones first"));
}

#[test]
fn a_run_that_watched_nothing_says_so() {
    let building = Building { watched: false, ..Building::default() };
    let page = html(&building, Lang::En);
    assert!(page.contains("No answer of this run was watched"));
    assert!(!page.contains("Attention by layer and part of the prompt") && !page.contains("heads are shown"));
}

#[test]
fn a_run_without_wrong_answers_says_so() {
    let page = html(&Building { wrong: 0, gates: vec![Status::Pass], ..Building::default() }, Lang::En);
    assert!(page.contains("No answer was wrong where the right document was in the prompt."));
}

#[test]
fn an_unfinished_run_is_refused_with_what_to_do() {
    let built = Building { finished: false, ..Building::default() }.build();
    let error = built.load().expect_err("no verdicts");
    assert!(matches!(error, ReportError::Unfinished { .. }));
    assert!(
        error
            .to_string()
            .contains("3 of 3 trials are answered, and there are no verdicts; go on with suite `plain`: `glassbox test SUITE --resume ")
    );
}

#[test]
fn reports_are_written_whole_and_leave_nothing_else() {
    let built = Building::default().build();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = built.load().expect("finished").write_reports(folder.path(), Lang::En).expect("written");
    let names: Vec<_> = written.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(names, ["report.html", "junit.xml", "report.json"]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 3);
}

#[test]
fn the_document_for_machines_names_its_format_and_holds_every_wrong_answer() {
    let built = Building { wrong: 70, ..Building::default() }.build();
    let json = built.load().expect("finished").json();
    assert_eq!((json["format"].as_str(), json["version"].as_u64()), (Some("glassbox-report"), Some(1)));
    assert_eq!(json["verdicts"]["status"], "fail");
    assert_eq!(json["wrong_answers"].as_array().map(Vec::len), Some(70));
    assert_eq!(json["wrong_answers"][0]["look"]["layers"][0]["uniform"][0], 0.2);
}

#[test]
fn a_terminal_shows_every_gate_within_its_width() {
    let run = Building::default().build().load().expect("finished");
    let text = run.terminal_summary(Lang::En, 80);
    for word in ["Verdict: FAIL", "PASS", "INCONCLUSIVE", "CANNOT-SAY", "`metric_3`", "accuracy, by plain"] {
        assert!(text.contains(word), "`{word}` in {text}");
    }
    let without_path = text.lines().filter(|line| !line.starts_with("Report"));
    assert!(without_path.clone().all(|line| line.chars().count() <= 80 && line.trim_end() == line), "{text}");
    assert!(run.terminal_summary(Lang::ZhCn, 80).contains("结论: 未通过"));
}
