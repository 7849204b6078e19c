//! Progress on standard error.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session::Event;

/// A bar over the cases of one run; draws nothing where stderr is no terminal.
pub struct Progress {
    bar: ProgressBar,
    cases: u64,
    finished: Cell<u64>,
}

impl Progress {
    /// A bar for this many cases.
    pub fn new(cases: usize) -> Self {
        let cases = cases as u64;
        let bar = ProgressBar::with_draw_target(Some(cases), ProgressDrawTarget::stderr());
        // The template is a constant; were it wrong, the default style would do.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}{prefix} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, cases, finished: Cell::new(0) }
    }

    /// Shows what happens.
    pub fn on(&self, event: Event) {
        match event {
            Event::Started(id) => self.bar.set_message(id.to_string()),
            // Over its seconds meanwhile.
            Event::Soaked { id, seconds, of } => {
                self.bar.set_message(format!("soak of {id}"));
                self.stand_at(seconds as u64, of, " s");
            }
            Event::Finished(_) => {
                self.finished.set(self.finished.get() + 1);
                self.stand_at(self.finished.get(), self.cases, "");
            }
        }
    }

    fn stand_at(&self, position: u64, of: u64, unit: &'static str) {
        self.bar.set_prefix(unit);
        self.bar.update(|state| {
            state.set_pos(position);
            state.set_len(of);
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
