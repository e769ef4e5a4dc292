//! What we do about an error. The one place that decides; callers do not look at codes.

use twinlog_kafka::error::{Class, Error, ErrorCode};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The same again after a while.
    Retry,
    /// Look for the leader again, then retry.
    RefreshAndRetry,
    /// Open the fetch session anew.
    NewSession,
    /// The position is not in the source's log: choose another.
    Reposition,
    /// Ask the target's log what it holds before anything more is sent.
    Sync,
    /// What was fetched is damaged: settle what is on its way, then fetch it again.
    Refetch,
    /// Nothing will change until somebody acts: pause this partition, others go on.
    Pause(Refused),
    /// Nothing can go on: tell the worker.
    Fail,
}

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The batch is larger than the target takes.
    Size,
    /// A record's time is outside what the target takes.
    Timestamp,
    /// The records themselves: a missing key in a compacted topic, as a rule.
    Record,
    /// A permission is missing.
    Permission,
    /// Somebody else writes under our producer id with a newer epoch.
    Producer,
    /// Anything else; the broker's words tell.
    Other,
}

/// Judges a failed fetch, produce or look at a log.
pub fn verdict(error: &Error) -> Verdict {
    match error.code() {
        Some(code) => verdict_on_code(code),
        None => match error.class() {
            // Credentials and versions do not change by waiting.
            Class::Authentication | Class::Unsupported => Verdict::Fail,
            // The connection is gone or was given up; a leader may have moved with it.
            _ => Verdict::RefreshAndRetry,
        },
    }
}

fn verdict_on_code(code: ErrorCode) -> Verdict {
    match code {
        // A checksum that does not match: damaged on its way to us or from us. Fetched again it may
        // be whole.
        ErrorCode::CORRUPT_MESSAGE => Verdict::Refetch,
        ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE => {
            Verdict::Pause(Refused::Size)
        }
        ErrorCode::INVALID_TIMESTAMP => Verdict::Pause(Refused::Timestamp),
        ErrorCode::INVALID_RECORD => Verdict::Pause(Refused::Record),
        _ => match code.class() {
            Class::Retriable => Verdict::Retry,
            Class::RefreshMetadata | Class::RefreshCoordinator => Verdict::RefreshAndRetry,
            Class::ResetFetchSession => Verdict::NewSession,
            Class::Position => Verdict::Reposition,
            Class::Sequence => Verdict::Sync,
            Class::Fenced => Verdict::Pause(Refused::Producer),
            Class::Authorization => Verdict::Pause(Refused::Permission),
            // What the broker calls an unexpected error on produce is final as a rule: it failed
            // over the content and would again (a compressed batch whose offsets have
            // holes answers -1).
            Class::Refused | Class::Unexpected => Verdict::Pause(Refused::Other),
            Class::Authentication | Class::Unsupported => Verdict::Fail,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(code: i16) -> Verdict {
        verdict(&Error::Broker {
            action: "test".into(),
            code: ErrorCode(code),
            message: None,
        })
    }

    #[test]
    fn every_code_has_the_verdict_that_loses_nothing() {
        let expected = [
            (Verdict::Retry, &[7, 14, 19, 20, 27, 51, 55, 60][..]),
            (
                Verdict::RefreshAndRetry,
                &[3, 5, 6, 9, 13, 15, 16, 41, 56, 72, 74, 75, 100, 103],
            ),
            (Verdict::NewSession, &[70, 71, 106]),
            (Verdict::Reposition, &[1]),
            (Verdict::Sync, &[45, 46, 59]),
            (Verdict::Refetch, &[2]),
            (Verdict::Pause(Refused::Size), &[10, 18]),
            (Verdict::Pause(Refused::Timestamp), &[32]),
            (Verdict::Pause(Refused::Record), &[87]),
            (Verdict::Pause(Refused::Permission), &[29, 30, 31, 53]),
            (Verdict::Pause(Refused::Producer), &[47, 90]),
            (Verdict::Pause(Refused::Other), &[-1, 17, 21, 42, 44]),
            (Verdict::Fail, &[33, 34, 35, 43, 58]),
        ];

        for (verdict, codes) in expected {
            for code in codes {
                assert_eq!(on(*code), verdict, "{}", ErrorCode(*code).name());
            }
        }
    }

    #[test]
    fn no_code_is_taken_for_success_or_left_to_spin() {
        // Retrying at once is only for what the protocol calls transient; a code of a newer broker
        // waits for a person.
        for code in ErrorCode::ALL
            .iter()
            .filter(|code| **code != ErrorCode::NONE)
        {
            let transient = matches!(
                code.class(),
                Class::Retriable
                    | Class::RefreshMetadata
                    | Class::RefreshCoordinator
                    | Class::ResetFetchSession
            );
            let retries = matches!(
                on(code.0),
                Verdict::Retry | Verdict::RefreshAndRetry | Verdict::NewSession
            );
            let damaged = *code == ErrorCode::CORRUPT_MESSAGE;
            assert_eq!(retries, transient && !damaged, "{}", code.name());
        }
        assert_eq!(on(32_000), Verdict::Pause(Refused::Other));
    }
}
