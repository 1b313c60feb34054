//! The server from outside: real sockets, the built-in model.

mod answering;
mod house;
mod leaving;
mod refusing;
mod streaming;
