//! The thing under test and what it can show: native or recorded.
