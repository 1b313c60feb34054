//! Which tests a command asks for.

use std::fmt;

use glassbox_mechanisms::cache::KvType;

use crate::BenchError;

/// What is done while the clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many tokens of a prompt go through together; the logits of the last one are computed.
    Prompt(usize),
    /// So many tokens go through one at a time, each with its logits.
    Generate(usize),
}

impl Work {
    /// Tokens that go through.
    #[must_use]
    pub fn tokens(self) -> usize {
        match self {
            Self::Prompt(tokens) | Self::Generate(tokens) => tokens,
        }
    }
}

/// One thing to measure. Its text is its name in `llama-bench`: `pp512`, `tg64 @ d2048`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// What is done.
    pub work: Work,
    /// Tokens that the cache holds before.
    pub depth: usize,
    /// Threads that do it.
    pub threads: usize,
    /// How the cache stores.
    pub kv_type: KvType,
}

impl Test {
    /// Tokens in the cache at the end.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.depth.saturating_add(self.work.tokens())
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Work::Prompt(tokens) => write!(f, "pp{tokens}")?,
            Work::Generate(tokens) => write!(f, "tg{tokens}")?,
        }
        if self.depth > 0 { write!(f, " @ d{}", self.depth) } else { Ok(()) }
    }
}

impl Test {
    /// The test of this name, as [`Test`] writes it.
    ///
    /// # Errors
    ///
    /// Where the text is no such name, or the test has no token.
    pub fn named(text: &str, threads: usize, kv_type: KvType) -> Result<Self, BenchError> {
        let parse = || {
            let (work, depth) = match text.split_once(" @ d") {
                Some((work, depth)) => (work, depth.parse().ok()?),
                None => (text, 0),
            };
            let work = match work.split_at_checked(2)? {
                ("pp", tokens) => Work::Prompt(tokens.parse().ok()?),
                ("tg", tokens) => Work::Generate(tokens.parse().ok()?),
                _ => return None,
            };
            (work.tokens() > 0).then_some(Self { work, depth, threads, kv_type })
        };
        parse().ok_or_else(|| BenchError::NoSuchTest { text: text.to_owned() })
    }

    /// The test itself, if the model was made for its length.
    ///
    /// # Errors
    ///
    /// Where it is longer than `context`.
    pub fn within(self, context: usize) -> Result<Self, BenchError> {
        if self.tokens() > context {
            return Err(BenchError::TooLong { test: self.to_string(), tokens: self.tokens(), context });
        }
        Ok(self)
    }
}

/// Every combination of its lists is a test; 0 tokens are none.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tokens of the prompts.
    pub prompts: Vec<usize>,
    /// Tokens generated.
    pub generated: Vec<usize>,
    /// Tokens in the cache before.
    pub depths: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Storage types of the cache.
    pub kv_types: Vec<KvType>,
}

impl Plan {
    /// The tests; those that begin with the same cache stand together.
    ///
    /// # Errors
    ///
    /// Where there is none, or one is longer than the `context` that the model was made for.
    pub fn tests(&self, context: usize) -> Result<Vec<Test>, BenchError> {
        let prompts = self.prompts.iter().map(|tokens| Work::Prompt(*tokens));
        let works: Vec<Work> =
            prompts.chain(self.generated.iter().map(|tokens| Work::Generate(*tokens))).filter(|work| work.tokens() > 0).collect();
        let mut tests = Vec::new();
        for kv_type in &self.kv_types {
            for depth in &self.depths {
                for threads in &self.threads {
                    tests.extend(works.iter().map(|work| Test { work: *work, depth: *depth, threads: *threads, kv_type: *kv_type }));
                }
            }
        }
        if tests.is_empty() {
            return Err(BenchError::Nothing);
        }
        tests.into_iter().map(|test: Test| test.within(context)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(prompts: &[usize], generated: &[usize], depths: &[usize]) -> Plan {
        let [prompts, generated, depths] = [prompts, generated, depths].map(<[usize]>::to_vec);
        Plan { prompts, generated, depths, threads: vec![1, 2], kv_types: vec![KvType::F32] }
    }

    #[test]
    fn every_combination_is_a_test_with_the_name_that_llama_bench_gives_it() {
        let tests = plan(&[512, 2048], &[64], &[0, 100]).tests(4096).expect("they fit");
        let named: Vec<String> = tests.iter().map(|test| format!("{test} t{}", test.threads)).collect();
        let mut wanted = Vec::new();
        for suffix in ["", " @ d100"] {
            for threads in [1, 2] {
                wanted.extend(["pp512", "pp2048", "tg64"].map(|work| format!("{work}{suffix} t{threads}")));
            }
        }
        assert_eq!(named, wanted);
    }

    #[test]
    fn a_test_is_found_by_its_name() {
        for test in plan(&[512], &[64], &[0, 100]).tests(4096).expect("they fit") {
            assert_eq!(Test::named(&test.to_string(), test.threads, test.kv_type).ok(), Some(test));
        }
        for text in ["", "p", "pp", "pp0", "pp-1", "xx5", "tg5 @ d", "tg5 @ 7", "ppé", "tg5@ d7"] {
            let error = Test::named(text, 1, KvType::F32).expect_err(text);
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn a_plan_without_a_test_or_longer_than_the_context_is_refused() {
        assert!(matches!(plan(&[0], &[0], &[0]).tests(10), Err(BenchError::Nothing)));
        assert_eq!(plan(&[0], &[4], &[6]).tests(10).map(|tests| tests.len()).ok(), Some(2));
        let error = plan(&[4], &[8], &[6]).tests(10).expect_err("14 tokens");
        assert_eq!(error.to_string(), "`tg8 @ d6` needs room for 14 tokens; the model was made for 10");
        assert!(plan(&[1], &[0], &[usize::MAX]).tests(10).is_err());
    }
}
