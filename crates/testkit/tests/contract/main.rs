//! What a Kafka cluster does, as cases that run against mini-kafka and against real Kafka: where
//! the two disagree, real Kafka is right. Everything here speaks the wire protocol itself, so that
//! no bug of the client under test can hide one of mini-kafka.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use mini_kafka::{MiniKafka, Options};
use testkit::RealKafka;

mod batch;
mod cases;
mod lab;
mod staged;

use lab::Lab;

/// How many brokers the cases count on.
const BROKERS: i32 = 2;
/// A case that takes longer hangs.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);

/// Now, as brokers see it: record timestamps must be near it.
fn now_ms() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "real brokers have no other clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_millis() as i64)
}

/// Runs all cases, and reports every one that fails.
async fn run_all(lab: &Lab) -> Result<()> {
    let mut failed = Vec::new();
    for (name, case) in cases::all() {
        let outcome = tokio::time::timeout(CASE_TIME_MAX, case(lab)).await;
        match outcome
            .context("the case hangs")
            .and_then(|outcome| outcome)
        {
            Ok(()) => {}
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} cases failed:\n  {}", failed.len(), failed.join("\n  "))
}

#[tokio::test]
async fn mini_kafka_keeps_the_contract() -> Result<()> {
    let options = Options {
        brokers: BROKERS,
        wall_clock_ms: now_ms(),
        ..Options::default()
    };
    let mini = MiniKafka::start(options);
    let lab = Lab::new(mini.listen_tcp(&[]).await?);

    let outcome = run_all(&lab).await;

    mini.shut_down().await;
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn real_kafka_keeps_the_contract() -> Result<()> {
    let start = || RealKafka::builder().brokers(BROKERS as usize).start();
    let kafka = tokio::task::spawn_blocking(start).await??;
    let lab = Lab::new(kafka.bootstrap().split(',').map(str::to_owned).collect());

    run_all(&lab).await
}
