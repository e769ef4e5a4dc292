//! Which events are logged.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Filter};

use crate::failure::Failure;

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Filters events and no spans: what a line concerns is told whatever its level.
pub struct Events(EnvFilter);

/// The filter that `text` stands for, INFO where it says nothing. `origin` is where it was written.
///
/// # Errors
/// When it can't be understood, or would silence everything by a word that is no level.
pub fn parse(text: &str, origin: &str) -> Result<Events, Failure> {
    const HINT: &str = "for example debug, or info,twinlog_kafka=debug";
    // Such a word passes for the name of a module, the only one to be logged then.
    let mut words = text.split(',').map(str::trim);
    if let Some(word) = words.find(|word| is_bare(word) && !is_level(word)) {
        let nearest = nearest(word).map(|level| format!("; did you mean {level}?"));
        let error = anyhow::anyhow!(
            "{origin}: {word:?} is none of {}{}",
            LEVELS.join(", "),
            nearest.unwrap_or_default()
        );
        return Err(Failure::misused(error).hint(HINT));
    }
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let filter = builder.parse(text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{origin}: {text:?}"));
        Failure::misused(error).hint(HINT)
    })?;
    Ok(Events(filter))
}

fn is_bare(word: &str) -> bool {
    !word.is_empty() && !word.contains(['=', '['])
}

fn is_level(word: &str) -> bool {
    word.parse::<LevelFilter>().is_ok()
}

/// The level that was meant: one that begins alike, or has the same letters.
fn nearest(word: &str) -> Option<&'static str> {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.to_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    let begins = |level: &&&str| word.to_lowercase().starts_with(&level[..3]);
    let found = LEVELS.iter().find(|level| sorted(level) == sorted(word));
    found.or_else(|| LEVELS.iter().find(begins)).copied()
}

impl<S: Subscriber> Filter<S> for Events {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        metadata.is_span() || Filter::enabled(&self.0, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Asked for spans too: it takes note of those that its directives name.
        let interest = Filter::<S>::callsite_enabled(&self.0, metadata);
        match metadata.is_span() {
            true => Interest::always(),
            false => interest,
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Our spans are of level INFO.
        let events = Filter::<S>::max_level_hint(&self.0)?;
        Some(events.max(LevelFilter::INFO))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        Filter::on_new_span(&self.0, attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        Filter::on_record(&self.0, id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        Filter::on_enter(&self.0, id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        Filter::on_exit(&self.0, id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        Filter::on_close(&self.0, id, context);
    }
}
