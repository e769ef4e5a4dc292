//! Incremental fetch sessions (KIP-227).

use anyhow::{Result, ensure};
use kafka_protocol::messages::fetch_request::{FetchTopic, ForgottenTopic};
use kafka_protocol::messages::{FetchRequest, FetchResponse};

use crate::batch::Batch;
use crate::lab::{Ask, Bench, FETCH, Lab, expect};

super::cases! {
    an_incremental_answer_holds_only_what_has_news,
    an_unread_partition_is_sent_again,
    a_forgotten_partition_is_silent,
    a_session_needs_its_id_and_epoch,
    the_final_epoch_opens_no_session_and_ends_one,
}

fn request(session: (i32, i32), bench: &Bench, parts: &[(i32, i64)]) -> FetchRequest {
    let partitions = parts
        .iter()
        .map(|(index, offset)| Ask::from(*offset).partition(*index));
    let topic = FetchTopic::default()
        .with_topic(bench.topic.clone())
        .with_partitions(partitions.collect());
    Ask::from(0)
        .request()
        .with_session_id(session.0)
        .with_session_epoch(session.1)
        .with_topics(if parts.is_empty() {
            Vec::new()
        } else {
            vec![topic]
        })
}

/// Partitions in the answer, with the sizes of their records.
fn parts(response: &FetchResponse) -> Vec<(i32, bool)> {
    let parts = response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions);
    let has_records = |r: &Option<bytes::Bytes>| r.as_ref().is_some_and(|r| !r.is_empty());
    let mut parts: Vec<_> = parts
        .map(|p| (p.partition_index, has_records(&p.records)))
        .collect();
    parts.sort_unstable();
    parts
}

async fn open(bench: &mut Bench, wanted: &[(i32, i64)]) -> Result<FetchResponse> {
    let response = bench
        .wire
        .call(&request((0, 0), bench, wanted), FETCH)
        .await?;
    expect("code", response.error_code, 0)?;
    ensure!(response.session_id > 0, "a session is opened");
    Ok(response)
}

async fn an_incremental_answer_holds_only_what_has_news(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(2).await?;
    let opened = open(&mut bench, &[(0, 0), (1, 0)]).await?;
    expect(
        "the full answer",
        parts(&opened),
        vec![(0, false), (1, false)],
    )?;
    let id = opened.session_id;

    // That a new partition has become ready may be news of its own.
    let mut idle = opened;
    let mut epoch = 0;
    while epoch == 0 || (!parts(&idle).is_empty() && epoch < 50) {
        epoch += 1;
        idle = bench
            .wire
            .call(&request((id, epoch), &bench, &[]), FETCH)
            .await?;
    }
    bench.fill(&[Batch::of(2)]).await?;
    let news = bench
        .wire
        .call(&request((id, epoch + 1), &bench, &[]), FETCH)
        .await?;
    let read = bench
        .wire
        .call(&request((id, epoch + 2), &bench, &[(0, 2)]), FETCH)
        .await?;

    expect("session of an incremental answer", idle.session_id, id)?;
    expect("nothing new", parts(&idle), vec![])?;
    expect("records arrived", parts(&news), vec![(0, true)])?;
    expect("all read", parts(&read), vec![])
}

async fn an_unread_partition_is_sent_again(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(2).await?;
    bench.fill(&[Batch::of(2)]).await?;
    let opened = open(&mut bench, &[(0, 0)]).await?;

    let again = bench
        .wire
        .call(&request((opened.session_id, 1), &bench, &[]), FETCH)
        .await?;

    expect("first", parts(&opened), vec![(0, true)])?;
    expect("again", parts(&again), vec![(0, true)])
}

async fn a_forgotten_partition_is_silent(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(2).await?;
    let opened = open(&mut bench, &[(0, 0), (1, 0)]).await?;
    let forgotten = ForgottenTopic::default()
        .with_topic(bench.topic.clone())
        .with_partitions(vec![0]);
    let forget =
        request((opened.session_id, 1), &bench, &[]).with_forgotten_topics_data(vec![forgotten]);

    bench.wire.call(&forget, FETCH).await?;
    bench.fill(&[Batch::of(2)]).await?;
    let after = bench
        .wire
        .call(&request((opened.session_id, 2), &bench, &[]), FETCH)
        .await?;

    expect("code", after.error_code, 0)?;
    expect("answer", parts(&after), vec![])
}

async fn a_session_needs_its_id_and_epoch(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(2).await?;
    let opened = open(&mut bench, &[(0, 0)]).await?;
    let id = opened.session_id;

    for (session, expected) in [
        ((id, 7), 71),
        ((id ^ 1, 1), 70),
        ((id, 1), 0),
        ((id, 1), 71),
    ] {
        let response = bench
            .wire
            .call(&request(session, &bench, &[]), FETCH)
            .await?;
        ensure!(
            response.error_code == expected,
            "{session:?}: {}",
            response.error_code
        );
    }
    Ok(())
}

async fn the_final_epoch_opens_no_session_and_ends_one(lab: &Lab) -> Result<()> {
    let mut bench = lab.bench_on_one_broker(2).await?;
    let sessionless = bench
        .wire
        .call(&request((0, -1), &bench, &[(0, 0)]), FETCH)
        .await?;
    let opened = open(&mut bench, &[(0, 0)]).await?;
    let id = opened.session_id;

    let ended = bench
        .wire
        .call(&request((id, -1), &bench, &[(0, 0)]), FETCH)
        .await?;
    let after = bench
        .wire
        .call(&request((id, 1), &bench, &[]), FETCH)
        .await?;

    expect("no session", sessionless.session_id, 0)?;
    expect("ended", (ended.error_code, ended.session_id), (0, 0))?;
    expect("after the end", after.error_code, 70)
}
