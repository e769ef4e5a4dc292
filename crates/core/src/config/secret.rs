//! Text that must never be shown.

use std::fmt;

/// A password or token. `Debug` and `Display` print stars; [`Secret::reveal`] is the one way to the
/// text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What stands in the place of a secret.
pub const STARS: &str = "********";

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the login it belongs to.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STARS)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STARS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_as_stars_and_revealed_on_request_only() {
        let secret = Secret::new("hunter2");

        assert_eq!(format!("{secret} {secret:?}"), format!("{STARS} {STARS}"));
        assert_eq!(secret.reveal(), "hunter2");
    }
}
