//! Progress on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session::Event;

/// A bar over the cases of one run; draws nothing where stderr is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for this many cases.
    pub fn new(cases: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
        // The template is a constant; were it wrong, the default style would do.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows what happens.
    pub fn on(&self, event: Event) {
        match event {
            Event::Started(id) => self.0.set_message(id.to_string()),
            Event::Finished(_) => self.0.inc(1),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
