//! The client on real Kafka.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod admin;
mod data;
mod faults;

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::RealKafka;
use tokio_util::sync::CancellationToken;
use twinlog_core::ids::{Topic, TopicPartition};
use twinlog_kafka::admin::{NewTopic, create_topics};
use twinlog_kafka::client::Client;
use twinlog_kafka::config::ClientConfig;
use twinlog_kafka::error::Result;
use twinlog_kafka::metadata::Leader;
use twinlog_kafka::retry::{Backoff, Retry, while_retriable};

fn config(cluster: &RealKafka) -> ClientConfig {
    let bootstrap = cluster.bootstrap();
    let addresses = bootstrap.split(',').map(|text| text.parse().unwrap());
    let mut config = ClientConfig::new(addresses.collect());
    config.request_timeout = Duration::from_secs(15);
    config
}

fn client(cluster: &RealKafka) -> Client {
    Client::new(config(cluster))
}

fn retry() -> Retry {
    Retry::new(Backoff::default(), CancellationToken::new(), 1)
}

/// Makes a topic and waits until all its partitions are led.
async fn make_topic(client: &Client, name: &str, partitions: i32, replicas: i16) -> Topic {
    let topic = Topic::from(name);
    let new = NewTopic {
        name: topic.clone(),
        partitions,
        replication_factor: replicas,
        configs: BTreeMap::new(),
    };
    let made = create_topics(client, &[new]).await.unwrap();
    made[&topic].as_ref().unwrap();
    for number in 0..partitions {
        leader(client, &TopicPartition::new(topic.clone(), number)).await;
    }
    topic
}

async fn leader(client: &Client, partition: &TopicPartition) -> Leader {
    let found: Result<Leader> = retry()
        .run("find a leader", while_retriable, || {
            client.leader(partition)
        })
        .await;
    found.unwrap()
}
