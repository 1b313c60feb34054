//! The model as its users meet it, on the tiny models of `fixtures/tiny`.

mod golden;
mod tiny;
mod twins;
