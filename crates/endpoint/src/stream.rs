//! Server-sent events: bytes in any pieces → the data of each event.
//!
//! Source: WHATWG HTML, 9.2.6 "Interpreting an event stream". Field names other than `data` and `event` say nothing to us.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// `event`, where it was given.
    pub(crate) name: String,
    /// The lines of `data`, joined by line feeds.
    pub(crate) data: Vec<u8>,
}

/// Takes a stream apart.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return, so a line feed now belongs to it.
    after_return: bool,
    begun: bool,
}

impl Events {
    /// Takes the next bytes, and gives the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    events.extend(self.end_line());
                }
                byte => {
                    self.after_return = false;
                    self.line.push(*byte);
                }
            }
        }
        events
    }

    /// The end of the stream: an event that lacks only its empty line counts, since servers forget it.
    pub(crate) fn finish(mut self) -> Option<Event> {
        let event = self.end_line();
        event.or_else(|| self.dispatch())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = match std::mem::replace(&mut self.begun, true) {
            false => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line),
            true => &line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Events::default();
        let mut found: Vec<Event> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
        found.extend(events.finish());
        found.into_iter().map(|event| (event.name, String::from_utf8(event.data).expect("text"))).collect()
    }

    const STREAMS: [(&str, &[(&str, &str)]); 8] = [
        ("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]),
        ("data: a\r\rdata:b\r\r", &[("", "a"), ("", "b")]),
        ("\u{feff}data: é🦀\n\n: ping\n\n\n\n:\ndata: 2\n\n", &[("", "é🦀"), ("", "2")]),
        ("event: error\ndata: {\"a\":\ndata: 1}\nid: 7\nretry: 9\n\n", &[("error", "{\"a\":\n1}")]),
        ("data\n\ndata:\n\ndata:  two blanks\n\n", &[("", ""), ("", ""), ("", " two blanks")]),
        ("event: x\n\ndata: y\n\ndata: [DONE]", &[("", "y"), ("", "[DONE]")]),
        ("dat: a\ndatax: b\n\n", &[]),
    ];

    #[test]
    fn a_stream_is_read_alike_however_it_is_cut() {
        for (stream, events) in STREAMS {
            let bytes = stream.as_bytes();
            let expected: Vec<(String, String)> = events.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
            assert_eq!(all(&[bytes]), expected, "{stream:?}");
            for at in 0..=bytes.len() {
                assert_eq!(all(&[&bytes[..at], &bytes[at..]]), expected, "{stream:?} cut at {at}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(all(&single), expected, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_cut() {
        let collect = |pieces: &[&[u8]]| {
            let mut events = Events::default();
            let mut found: Vec<Event> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
            found.extend(events.finish());
            found
        };
        const LETTERS: &[u8] = b"\n\n\n\r:data \xEF\xBB\xBF\x00\xFF";
        let mut state = 20_261_201_u64;
        for _ in 0..2_000 {
            // Knuth's linear congruential generator; its high bits are random enough for cuts.
            let mut next = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            let bytes: Vec<u8> = (0..next(60)).map(|_| LETTERS[next(LETTERS.len())]).collect();
            let at = next(bytes.len() + 1);
            assert_eq!(collect(&[&bytes]), collect(&[&bytes[..at], &bytes[at..]]), "{bytes:?} cut at {at}");
        }
    }
}
