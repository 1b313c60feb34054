//! Intervals, paired tests, bootstrap, power; checked against known truths.
