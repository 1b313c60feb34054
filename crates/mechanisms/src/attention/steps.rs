//! The running softmax in slow motion: what a row remembers after each tile of keys. For teaching; nothing computes with it.
