//! The `server.properties` of KRaft nodes.

use crate::ports::Port;

/// Node id of the controller of a cluster with several brokers; brokers count from 1.
pub(crate) const CONTROLLER_ID: usize = 100;

/// Of one broker; of the controller too, when it has none apart.
pub(crate) fn broker_properties(
    id: usize,
    brokers: usize,
    port: &Port,
    combined_with: Option<&Port>,
    voters: &str,
) -> String {
    let plaintext = format!("PLAINTEXT://{}", port.address());
    let (roles, listeners) = match combined_with {
        Some(controller) => (
            "broker,controller",
            format!("{plaintext},CONTROLLER://{}", controller.address()),
        ),
        None => ("broker", plaintext.clone()),
    };
    let replicas = brokers.min(3);
    let mut text = format!(
        "process.roles={roles}\nnode.id={id}\nlisteners={listeners}\n\
         advertised.listeners={plaintext}\ninter.broker.listener.name=PLAINTEXT\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\n\
         offsets.topic.replication.factor={replicas}\n\
         transaction.state.log.replication.factor={replicas}\n"
    );
    text.push_str(SMALL_CLUSTER);
    text
}

/// What a broker needs less of, or sooner, when it lives for a test. All else is Kafka's default.
const SMALL_CLUSTER: &str = "\
offsets.topic.num.partitions=5
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=5
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
";

/// Of a controller that is no broker.
pub(crate) fn controller_properties(port: &Port, voters: &str) -> String {
    format!(
        "process.roles=controller\nnode.id={CONTROLLER_ID}\n\
         listeners=CONTROLLER://{}\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\n",
        port.address()
    )
}
