//! Record to terminal table, HTML, JUnit, JSON, SVG and PNG; never runs a model.
