//! Where an answer takes 100 ms the rate is not that of waiting for answers. The clock is paused:
//! what passes is waiting and nothing else.

use std::time::Duration;

use anyhow::{Result, ensure};
use mini_kafka::ApiKey;
use testkit::eventually_async;
use tokio::time::Instant;
use twinlog_kafka::batch::Record;

use crate::support::{Clusters, NOW_MS, WITHIN, records, stop};

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Writes `batches` of one record of `size` bytes each.
async fn fill(clusters: &Clusters, batches: usize, size: usize) -> Result<Vec<Record>> {
    clusters.source.create_topic("orders", 1, 1);
    let record = |number: usize| Record {
        offset: number as i64,
        timestamp: NOW_MS,
        value: Some(vec![number as u8; size].into()),
        ..Record::default()
    };
    let all: Vec<Record> = (0..batches).map(record).collect();
    for record in &all {
        clusters
            .produce_records("orders", 0, std::slice::from_ref(record))
            .await?;
    }
    Ok(all)
}

/// Mirrors it all, and expects it to be there. It gives back how many round trips of a line passed
/// until then.
async fn round_trips(clusters: &Clusters, all: &[Record]) -> Result<f64> {
    let before = Instant::now();
    let flow = clusters.mirror("")?;
    let is_there = async || {
        let end = clusters.target.partition("us.orders", 0);
        let end = end.map_or(0, |seen| seen.log_end);
        ensure!(end >= all.len() as i64, "{end} of {}", all.len());
        Ok(())
    };
    eventually_async(WITHIN, is_there).await?;
    let took = before.elapsed();
    stop(flow).await;
    assert!(records(&clusters.target, "us.orders", 0)? == all);
    Ok(took.as_secs_f64() / ROUND_TRIP.as_secs_f64())
}

#[tokio::test(start_paused = true)]
async fn small_batches_to_a_far_target_share_their_round_trips() -> Result<()> {
    let mut clusters = Clusters::start(1)?;
    clusters.lines[1] = ROUND_TRIP;
    let all = fill(&clusters, 4_000, 1_000).await?;

    let took = round_trips(&clusters, &all).await?;

    let requests = clusters.target.requests(ApiKey::Produce);
    // Five batches a round trip would take 800 of them.
    assert!(took < 30.0, "{took} round trips");
    assert!(requests < 60, "{requests} requests");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_far_source_is_asked_for_more_at_a_time() -> Result<()> {
    let mut clusters = Clusters::start(1)?;
    clusters.lines[0] = ROUND_TRIP;
    let all = fill(&clusters, 400, 100_000).await?;

    let took = round_trips(&clusters, &all).await?;

    // 38 MiB: with 1 MiB a round trip, as near sources are asked for, it would take 39 of them
    // alone.
    assert!(took < 30.0, "{took} round trips");
    Ok(())
}
