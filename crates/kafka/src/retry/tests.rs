//! The loop on a paused clock.

use std::cell::Cell;

use tokio::time::Instant;

use super::*;
use crate::error::ErrorCode;

fn failure(code: ErrorCode) -> Error {
    Error::Broker {
        action: "test".to_owned(),
        code,
        message: None,
    }
}

const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    max: Duration::from_secs(1),
};

#[tokio::test(start_paused = true)]
async fn it_goes_on_until_an_attempt_succeeds() {
    let attempts = Cell::new(0);
    let started = Instant::now();
    let mut retry = Retry::new(BACKOFF, CancellationToken::new(), 7);

    let done = retry.run("test", while_retriable, async || {
        attempts.set(attempts.get() + 1);
        match attempts.get() {
            10 => Ok("done"),
            _ => Err(failure(ErrorCode::NOT_LEADER_OR_FOLLOWER)),
        }
    });
    let done = done.await;

    assert_eq!((done.unwrap(), attempts.get()), ("done", 10));
    // 100 + 200 + 400 + 800 + 5 x 1000 ms, each cut by up to a fifth.
    let waited = started.elapsed().as_millis();
    assert!((5_200..=6_500).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn what_the_verdict_gives_up_on_goes_to_the_caller_at_once() {
    let started = Instant::now();
    let mut retry = Retry::new(BACKOFF, CancellationToken::new(), 7);

    let done = retry.run("test", while_retriable, async || {
        Err::<(), _>(failure(ErrorCode::TOPIC_AUTHORIZATION_FAILED))
    });
    let done = done.await;

    assert_eq!(
        done.unwrap_err().code(),
        Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
    );
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_pause_and_the_attempt() {
    for stuck_in_attempt in [false, true] {
        let cancel = CancellationToken::new();
        let mut retry = Retry::new(BACKOFF, cancel.clone(), 7);
        let run = retry.run("read the log", while_retriable, async || {
            if stuck_in_attempt {
                std::future::pending::<()>().await;
            }
            Err::<(), _>(failure(ErrorCode::REQUEST_TIMED_OUT))
        });
        let stop = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            cancel.cancel();
        };

        let (done, ()) = tokio::join!(run, stop);

        assert!(
            matches!(&done, Err(Error::Cancelled { action }) if action == "read the log"),
            "{done:?}"
        );
    }
}

#[test]
fn pauses_double_to_their_limit_and_jitter_shortens_them() {
    let mut random = fastrand::Rng::with_seed(1);
    for (failures, longest) in [(0, 100), (1, 200), (3, 800), (4, 1_000), (u32::MAX, 1_000)] {
        for _ in 0..100 {
            let pause = BACKOFF.pause(failures, &mut random);
            let longest = Duration::from_millis(longest);
            assert!(
                pause <= longest && pause >= longest.mul_f64(0.8),
                "{failures}: {pause:?}"
            );
        }
    }
}
