//! DeleteTopics, by name or by id.

use kafka_protocol::ResponseError::UnknownTopicOrPartition;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};

use super::{Answer, Api, Call, topic_name};
use crate::refusal::{Refusal, code};

impl Api for DeleteTopicsRequest {
    const OURS: (i16, i16) = (1, 6);

    fn partitions(&self, _call: &Call) -> Vec<(String, i32)> {
        let states = self.topics.iter().filter_map(|topic| topic.name.as_ref());
        self.topic_names
            .iter()
            .chain(states)
            .map(|name| (name.to_string(), -1))
            .collect()
    }

    async fn answer(&self, call: &Call) -> Answer<DeleteTopicsResponse> {
        let by_name = self.topic_names.iter().map(|name| {
            let outcome = delete(call, name);
            result(&outcome).with_name(Some(name.clone()))
        });
        let by_either = self.topics.iter().map(|topic| {
            let name = match &topic.name {
                Some(name) => Ok(name.to_string()),
                None => call.state().topic_name(topic.topic_id).map(str::to_owned),
            };
            let outcome = name.clone().and_then(|name| delete(call, &name));
            result(&outcome)
                .with_name(name.ok().as_deref().map(topic_name))
                .with_topic_id(*outcome.as_ref().unwrap_or(&topic.topic_id))
        });
        let responses = by_name.chain(by_either).collect();
        Answer::Response(DeleteTopicsResponse::default().with_responses(responses))
    }
}

fn delete(call: &Call, name: &str) -> Result<uuid::Uuid, Refusal> {
    call.guarded(name, -1, || {
        let removed = call.state().remove_topic(name);
        removed
            .map(|topic| topic.id)
            .ok_or_else(|| UnknownTopicOrPartition.into())
    })
}

fn result(outcome: &Result<uuid::Uuid, Refusal>) -> DeletableTopicResult {
    let message = outcome.as_ref().err().and_then(Refusal::text);
    DeletableTopicResult::default()
        .with_error_code(code(outcome))
        .with_error_message(message)
}
