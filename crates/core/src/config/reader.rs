//! Typed values out of a layer of settings, with a note of each one that was looked at.

use std::time::Duration;

use super::keys::{Key, Table, is_secret};
use super::resolve::{Layer, Origin};
use super::secret::STARS;
use super::value;

/// One value that is in effect, for `check --explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The key, without prefixes.
    pub key: &'static str,
    /// Its value; stars if it is a secret, none if there is no value.
    pub value: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// The settings that one part of a flow works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Which part, such as `source consumer`.
    pub name: &'static str,
    /// Its settings, in the order in which they are looked at.
    pub settings: Vec<Setting>,
}

/// Reads a layer by the tables of keys. Values were checked line by line before, so one that can't
/// be read (there is a problem about it then) counts as absent.
pub(super) struct Reader<'a> {
    layer: &'a Layer,
    tables: &'a [Table],
    section: Section,
}

impl<'a> Reader<'a> {
    pub(super) fn new(name: &'static str, layer: &'a Layer, tables: &'a [Table]) -> Self {
        let section = Section {
            name,
            settings: Vec::new(),
        };
        Reader {
            layer,
            tables,
            section,
        }
    }

    pub(super) fn into_section(self) -> Section {
        self.section
    }

    /// The key's entry: every name that is read must have one.
    fn key(&self, name: &str) -> Option<&'static Key> {
        let key = self.tables.iter().find_map(|table| table.find(name));
        debug_assert!(
            key.is_some(),
            "`{name}` is read, but in none of {:?}",
            self.tables
        );
        key
    }

    /// The text of a value, or of `default`; notes it.
    pub(super) fn text_or(&mut self, name: &str, default: Option<&str>) -> Option<String> {
        let key = self.key(name)?;
        let written = self
            .layer
            .get(name)
            .filter(|v| value::check(key, &v.text).is_ok());
        let text = written
            .map(|v| value::trim(&v.text))
            .or(default)
            .map(str::to_owned);
        let shown = if is_secret(name) {
            text.as_ref().map(|_| STARS.to_owned())
        } else {
            text.clone()
        };
        self.section.settings.push(Setting {
            key: key.name,
            value: shown,
            origin: written.map_or(Origin::Default, |v| v.origin.clone()),
        });
        text
    }

    /// The text of a value, or of the table's default.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let default = self.key(name)?.default;
        self.text_or(name, default)
    }

    /// Only what was written; nothing if it is the same as none.
    pub(super) fn optional(&mut self, name: &str) -> Option<String> {
        self.text_or(name, None).filter(|text| !text.is_empty())
    }

    pub(super) fn boolean(&mut self, name: &str) -> bool {
        self.text(name)
            .as_deref()
            .and_then(value::boolean)
            .unwrap_or_default()
    }

    pub(super) fn integer(&mut self, name: &str) -> i64 {
        self.text(name)
            .as_deref()
            .and_then(value::integer)
            .unwrap_or_default()
    }

    /// A number that the table keeps within 0 and `u32::MAX`.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or_default()
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        value::list(&text).into_iter().map(str::to_owned).collect()
    }

    /// Milliseconds; less than none is none.
    pub(super) fn millis(&mut self, name: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.integer(name)).unwrap_or_default())
    }

    /// A pair `<name>.enabled` and `<name>.interval.seconds`: none if it is off or the interval
    /// negative, and at least a second.
    pub(super) fn periodic(&mut self, name: &str) -> Option<Duration> {
        let enabled = self.boolean(&format!("{name}.enabled"));
        let seconds = self.integer(&format!("{name}.interval.seconds"));
        let seconds = u64::try_from(seconds).ok()?.max(1);
        enabled.then_some(Duration::from_secs(seconds))
    }
}
