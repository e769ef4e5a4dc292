//! Why a request, or a part of one, was not served.

use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

/// An error code of the protocol with what the broker says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub code: ResponseError,
    pub message: Option<String>,
    /// Numbers of the records at fault, if a batch was refused for some of them.
    pub records: Vec<i32>,
}

impl Refusal {
    /// A refusal that explains itself.
    pub fn new(code: ResponseError, message: impl Into<String>) -> Self {
        Refusal {
            code,
            message: Some(message.into()),
            records: Vec::new(),
        }
    }

    /// The message as responses carry it.
    pub fn text(&self) -> Option<StrBytes> {
        self.message.clone().map(StrBytes::from_string)
    }
}

impl From<ResponseError> for Refusal {
    fn from(code: ResponseError) -> Self {
        Refusal {
            code,
            message: None,
            records: Vec::new(),
        }
    }
}

/// The code that responses carry: 0 for success.
pub(crate) fn code<T>(outcome: &Result<T, Refusal>) -> i16 {
    outcome
        .as_ref()
        .map_or_else(|refusal| refusal.code.code(), |_| 0)
}
