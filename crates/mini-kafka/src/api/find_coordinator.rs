//! FindCoordinator: one broker coordinates everything.

use kafka_protocol::ResponseError::CoordinatorNotAvailable;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};

use super::{Answer, Api, Call, text};
use crate::refusal::Refusal;

/// Since this version one request asks for several keys (KIP-699).
const BATCHED: i16 = 4;

impl Api for FindCoordinatorRequest {
    const OURS: (i16, i16) = (0, 6);

    async fn answer(&self, call: &Call) -> Answer<FindCoordinatorResponse> {
        let found = call.whole(|| find(call));
        let (code, message) = match &found {
            Ok(_) => (0, None),
            Err(refusal) => (refusal.code.code(), refusal.text()),
        };
        let (id, host, port) = found.unwrap_or((-1, String::new(), -1));
        let response = FindCoordinatorResponse::default();
        if call.version < BATCHED {
            let response = response.with_error_code(code).with_error_message(message);
            return Answer::Response(
                response
                    .with_node_id(BrokerId(id))
                    .with_host(text(host))
                    .with_port(port),
            );
        }
        let coordinators = self.coordinator_keys.iter().map(|key| {
            Coordinator::default()
                .with_key(key.clone())
                .with_node_id(BrokerId(id))
                .with_host(text(host.as_str()))
                .with_port(port)
                .with_error_code(code)
                .with_error_message(message.clone())
        });
        Answer::Response(response.with_coordinators(coordinators.collect()))
    }
}

fn find(call: &Call) -> Result<(i32, String, i32), Refusal> {
    let state = call.state();
    let broker = state.controller().ok_or(CoordinatorNotAvailable)?;
    Ok((broker.id, broker.host.clone(), broker.port.into()))
}
