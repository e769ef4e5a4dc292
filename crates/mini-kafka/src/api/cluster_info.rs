//! DescribeCluster.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};

use super::{Answer, Api, Call, text};

impl Api for DescribeClusterRequest {
    const OURS: (i16, i16) = (0, 2);

    async fn answer(&self, call: &Call) -> Answer<DescribeClusterResponse> {
        let refused = call.whole(|| Ok(())).err();
        let state = call.state();
        let brokers = state
            .brokers
            .iter()
            .filter(|broker| broker.up)
            .map(|broker| {
                DescribeClusterBroker::default()
                    .with_broker_id(BrokerId(broker.id))
                    .with_host(text(broker.host.as_str()))
                    .with_port(broker.port.into())
                    .with_rack(broker.rack.as_deref().map(text))
            });
        let response = DescribeClusterResponse::default()
            .with_error_code(refused.map_or(0, |refusal| refusal.code.code()))
            .with_cluster_id(text(state.options.cluster_id.as_str()))
            .with_controller_id(BrokerId(state.controller().map_or(-1, |broker| broker.id)))
            .with_brokers(brokers.collect());
        Answer::Response(response)
    }
}
