//! Whether a cluster answers at all. An outage is a state with a beginning and an end, told once
//! each, whatever the requests that meet it do.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use twinlog_core::ids::ClusterAlias;
use twinlog_kafka::admin::describe_cluster;
use twinlog_kafka::client::Client;
use twinlog_kafka::error::Error;

/// How often a cluster that answers is asked. The question is a few bytes to one broker.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// How often one that does not answer is asked.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A cluster that takes longer counts as away, though the connection may be open: its machines may
/// be frozen, or what comes back is lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// One failure may be a broker that is being restarted while others take over.
const FAILURES_MIN: u32 = 2;

/// An outage: no broker of a cluster answers.
#[derive(Debug, Clone)]
pub struct Outage {
    /// Since when.
    pub since: Instant,
    /// What was tried, and how it ended.
    pub reason: String,
}

/// Asks the cluster for as long as it is polled, and keeps in `outage` whether it answers.
pub async fn watch(
    client: Client,
    cluster: ClusterAlias,
    outage: watch::Sender<Option<Outage>>,
) -> std::convert::Infallible {
    let mut answered = Instant::now();
    let mut failures = 0;
    loop {
        let question = describe_cluster(&client);
        tokio::pin!(question);
        // One that takes long is not given up: its answer is the end of the outage.
        let answer = match timeout(ANSWER_WITHIN, &mut question).await {
            Ok(answer) => answer,
            Err(_) => {
                begin(&outage, &cluster, answered, no_answer());
                question.await
            }
        };
        match answer {
            Ok(_) => {
                failures = 0;
                answered = Instant::now();
                end(&outage, &cluster);
                sleep(ASK_EVERY).await;
            }
            Err(error) => {
                failures += 1;
                if failures >= FAILURES_MIN {
                    begin(&outage, &cluster, answered, described(&error));
                }
                sleep(ASK_AGAIN_AFTER).await;
            }
        }
    }
}

fn begin(
    outage: &watch::Sender<Option<Outage>>,
    cluster: &ClusterAlias,
    since: Instant,
    reason: String,
) {
    let is_news = outage.borrow().is_none();
    if is_news {
        tracing::warn!(%cluster, reason, "no broker of this cluster answers: waiting for it");
    }
    outage.send_modify(|outage| match outage {
        Some(known) => known.reason = reason,
        None => *outage = Some(Outage { since, reason }),
    });
}

fn end(outage: &watch::Sender<Option<Outage>>, cluster: &ClusterAlias) {
    if let Some(over) = outage.send_replace(None) {
        let away_s = over.since.elapsed().as_secs();
        tracing::info!(%cluster, away_s, "the cluster answers again");
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", ANSWER_WITHIN.as_secs())
}

fn described(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
