//! `sites`: the table of watchable places.

use glassbox_anatomy::{Scope, Site};

use crate::exit::Exit;
use crate::{Outcome, terminal};

pub(crate) fn run() -> Outcome {
    let mut table = terminal::table(&["site", "axes", "meaning"]);
    for site in Site::ALL {
        let path = match site.scope() {
            Scope::Pass => site.name().to_owned(),
            Scope::Block => format!("blocks.*.{}", site.name()),
        };
        table.add_row([path, format!("[{}]", site.axes().join(", ")), site.meaning().to_owned()]);
    }
    terminal::print_table(table)?;
    Ok(Exit::Success)
}
