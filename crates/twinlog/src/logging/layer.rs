//! Turns events and the spans around them into lines.

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::LogFormat;
use super::line::{Fields, Line};
use super::output::LogOutput;

/// The layer that writes lines.
pub struct Lines {
    format: LogFormat,
    output: LogOutput,
}

impl Lines {
    /// Lines of `format` on `output`.
    pub fn new(format: LogFormat, output: LogOutput) -> Self {
        Lines { format, output }
    }
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut Recorder(&mut fields));
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(&mut Recorder(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(Scope::from_root)
        {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.extend(outer);
            }
        }
        event.record(&mut Recorder(&mut fields));
        let metadata = event.metadata();
        let line = Line::new(now(), *metadata.level(), metadata.target(), fields);
        self.output.write(&match self.format {
            LogFormat::Text => line.text(),
            LogFormat::Json => line.json(),
        });
    }
}

/// UTC to the millisecond, as RFC 3339 writes it.
fn now() -> String {
    let mut text = String::with_capacity(27);
    match SystemTime.format_time(&mut Writer::new(&mut text)) {
        Ok(()) => match text.get(.."2026-12-01T02:58:26.123".len()) {
            Some(milliseconds) => format!("{milliseconds}Z"),
            None => text,
        },
        Err(_) => "unknown time".to_owned(),
    }
}

struct Recorder<'a>(&'a mut Fields);

impl Visit for Recorder<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.set(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.set(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.set(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.set(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.set(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.set(field.name(), value);
    }

    /// The whole chain of causes: whoever logs an error consumes it.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        self.0.set(field.name(), text);
    }
}
