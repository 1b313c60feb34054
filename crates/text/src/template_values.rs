//! Bounds on what a template holds and does while it runs: each is a case in which the library would end the process.

use std::thread;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// Levels of lists and mappings inside one another; conversations and tool schemas stay below 30.
pub(crate) const VALUE_NESTING: usize = 100;
/// Digits of a width in `str.format`: columns of a table need three.
const WIDTH_DIGITS: usize = 4;
/// Stack of a thread that compiles or renders. The library descends for what is nested, in source and values, up to some 30 000 levels of half a
/// kilobyte; what is not used is never touched.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a stack of its own; `None` where it panics.
pub(crate) fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("template".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// A value that a variable is to hold. A lazy list becomes one with its items, so that sums of lists do not grow unseen; each item costs a step.
pub(crate) fn kept(state: &State, value: Value) -> Result<Value, Error> {
    check(state, &value, 0, true)?;
    if value.kind() == ValueKind::Iterable { Ok(value.try_iter()?.collect()) } else { Ok(value) }
}

/// As [`kept`], for an attribute of a namespace.
pub(crate) fn kept_in_namespace(state: &State, value: Value) -> Result<Value, Error> {
    check(state, &value, 0, false)?;
    kept(state, value)
}

fn check(state: &State, value: &Value, depth: usize, namespaces: bool) -> Result<(), Error> {
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(());
    }
    let is_namespace = || value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"));
    if depth > VALUE_NESTING || !namespaces && is_namespace() {
        let message = format!("recursion limit: values nest at most {VALUE_NESTING} levels, and no namespace holds another");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    for item in value.try_iter()? {
        state.consume_fuel(1)?;
        let item = if kind == ValueKind::Map { value.get_item(&item)? } else { item };
        check(state, &item, depth + 1, namespaces)?;
    }
    Ok(())
}

/// Refuses `str.format` with a width or a precision that is no layout: the library would allocate it.
pub(crate) fn check_widths(text: &str) -> Result<(), Error> {
    let (mut in_field, mut digits) = (false, 0);
    for character in text.chars() {
        in_field = character == '{' || in_field && character != '}';
        digits = if in_field && character.is_ascii_digit() { digits + 1 } else { 0 };
        if digits >= WIDTH_DIGITS {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("str.format: a number of {WIDTH_DIGITS} digits or more")));
        }
    }
    Ok(())
}
