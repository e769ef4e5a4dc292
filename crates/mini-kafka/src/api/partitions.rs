//! CreatePartitions: topics only grow.

use kafka_protocol::ResponseError::{InvalidPartitions, InvalidReplicaAssignment};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{BrokerId, CreatePartitionsRequest, CreatePartitionsResponse};

use super::create_topics::check_replication_factor;
use super::{Answer, Api, Call};
use crate::refusal::{Refusal, code};
use crate::state::State;

impl Api for CreatePartitionsRequest {
    const OURS: (i16, i16) = (0, 3);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        self.topics
            .iter()
            .map(|topic| (topic.name.to_string(), -1))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<CreatePartitionsResponse> {
        let results = self.topics.iter().map(|topic| {
            let outcome = call.guarded(&topic.name, -1, || grow(call, topic, self.validate_only));
            CreatePartitionsTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(code(&outcome))
                .with_error_message(outcome.err().and_then(|refusal| refusal.text()))
        });
        Answer::Response(CreatePartitionsResponse::default().with_results(results.collect()))
    }
}

fn grow(call: &Call, wanted: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    let mut state = call.state();
    let topic = state.topic(&wanted.name)?;
    let have = topic.partitions.len() as i32;
    let replicas = topic
        .partitions
        .first()
        .map_or(1, |partition| partition.replicas.len()) as i16;
    if wanted.count <= have {
        let message = format!(
            "The topic {} currently has {have} partition(s); {} would not be an increase.",
            &*wanted.name, wanted.count
        );
        return Err(Refusal::new(InvalidPartitions, message));
    }
    let added = match &wanted.assignments {
        Some(by_hand) if by_hand.len() as i32 != wanted.count - have => {
            return Err(InvalidReplicaAssignment.into());
        }
        Some(by_hand) if by_hand.iter().any(|a| !all_known(&state, &a.broker_ids)) => {
            return Err(InvalidReplicaAssignment.into());
        }
        Some(by_hand) => by_hand
            .iter()
            .map(|a| a.broker_ids.iter().map(|id| id.0).collect())
            .collect(),
        None => {
            check_replication_factor(&state, replicas)?;
            state.spread(have as usize, wanted.count - have, replicas)
        }
    };
    if validate_only {
        return Ok(());
    }
    let new: Vec<_> = added
        .into_iter()
        .map(|replicas| state.new_partition(replicas))
        .collect();
    if let Some(topic) = state.topics.get_mut(wanted.name.as_str()) {
        topic.partitions.extend(new);
    }
    state.changed();
    Ok(())
}

fn all_known(state: &State, brokers: &[BrokerId]) -> bool {
    !brokers.is_empty() && brokers.iter().all(|id| state.broker(id.0).is_some())
}
