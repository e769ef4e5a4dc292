//! Moving leaders from broker to broker, with none of them ending.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::{AlterPartitionReassignmentsRequest, BrokerId, ElectLeadersRequest};

use crate::admin::{Admin, call, check, name};
use crate::eventually;

/// How long the cluster may take to agree.
const ELECTION: Duration = Duration::from_secs(60);
const ELECTION_MS: i32 = 60_000;
/// Of ElectLeaders (KIP-460): the first replica leads.
const PREFERRED: i8 = 0;

impl Admin {
    /// Has a partition led by the first of these brokers, which must be those that have it already,
    /// and waits until it is. Its followers stay in sync and nothing else changes. From Kafka 2.4 on.
    ///
    /// # Errors
    /// When the controller refuses, or the leader doesn't change in time.
    pub fn move_leader(&self, topic: &str, partition: i32, replicas: &[i32]) -> Result<()> {
        let wanted = *replicas.first().context("a leader among no replicas")?;
        let action = || format!("have broker {wanted} lead {topic}-{partition}");
        self.order_replicas(topic, partition, replicas)
            .with_context(action)?;
        let partition = usize::try_from(partition)?;
        eventually(ELECTION, || {
            // A replica that has just come back is not in sync yet.
            self.elect_preferred(topic)?;
            let leaders = self.leaders(topic)?;
            ensure!(
                leaders.get(partition) == Some(&wanted),
                "the leaders are {leaders:?}"
            );
            Ok(())
        })
        .with_context(action)
    }

    /// Names the replicas of a partition in the order in which they are preferred as leaders.
    fn order_replicas(&self, topic: &str, partition: i32, replicas: &[i32]) -> Result<()> {
        let replicas = replicas.iter().map(|id| BrokerId(*id)).collect();
        let ordered = ReassignablePartition::default()
            .with_partition_index(partition)
            .with_replicas(Some(replicas));
        let request = AlterPartitionReassignmentsRequest::default()
            .with_topics(vec![
                ReassignableTopic::default()
                    .with_name(name(topic))
                    .with_partitions(vec![ordered]),
            ])
            .with_timeout_ms(ELECTION_MS);
        let response = call(&self.controller()?, &request, 0)?;
        check(response.error_code)?;
        let answers = response
            .responses
            .iter()
            .flat_map(|topic| &topic.partitions);
        for answer in answers {
            check(answer.error_code)?;
        }
        Ok(())
    }

    /// Has each partition led by its first replica, as far as that is in sync.
    fn elect_preferred(&self, topic: &str) -> Result<()> {
        let partitions = i32::try_from(self.leaders(topic)?.len())?;
        let request = ElectLeadersRequest::default()
            .with_election_type(PREFERRED)
            .with_topic_partitions(Some(vec![
                TopicPartitions::default()
                    .with_topic(name(topic))
                    .with_partitions((0..partitions).collect()),
            ]))
            .with_timeout_ms(ELECTION_MS);
        let response = call(&self.controller()?, &request, 1)?;
        check(response.error_code)?;
        let answers = response.replica_election_results.iter();
        for answer in answers.flat_map(|topic| &topic.partition_result) {
            if answer.error_code != ResponseError::ElectionNotNeeded.code() {
                let number = answer.partition_id;
                check(answer.error_code).with_context(|| format!("elect for {topic}-{number}"))?;
            }
        }
        Ok(())
    }
}
