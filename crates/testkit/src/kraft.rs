//! Clusters with KRaft (3.3 and later).

use std::path::Path;

use anyhow::Result;

use crate::RealKafkaBuilder;
use crate::jars::Jars;
use crate::node::Node;
use crate::ports::Port;
use crate::quick_start::{QuickStart, cluster_id};

/// Node id of the controller of a cluster with several brokers; brokers count from 1.
const CONTROLLER_ID: usize = 100;

/// What a broker needs less of, or sooner, when it lives for a test. All else is Kafka's default.
pub(crate) const SMALL_CLUSTER: &str = "\
offsets.topic.num.partitions=5
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=5
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
";

/// Makes the folders of all nodes under `home`: the brokers by their id, then the controller if it
/// is apart.
pub(crate) fn lay_out(
    wanted: &RealKafkaBuilder,
    jars: &Jars,
    quick_start: &QuickStart,
    home: &Path,
) -> Result<Vec<Node>> {
    let apart = wanted.brokers > 1;
    let controller_id = if apart { CONTROLLER_ID } else { 1 };
    let controller = Port::claim()?;
    let controller_address = controller.address();
    let voters = format!("{controller_id}@{controller_address}");
    let cluster_id = cluster_id();
    let extra = wanted.extra_properties();
    let node = |id: usize, ports: Vec<Port>, text: String| -> Result<Node> {
        let folder = home.join(format!("node-{id}"));
        let data = Node::data(&folder);
        quick_start.lay_out(&data, &cluster_id, id)?;
        let mut jvm_options = quick_start.jvm_options(wanted.jvm);
        jvm_options.push(format!("-Xmx{}", wanted.heap));
        let node = Node {
            id,
            jars: jars.clone(),
            jvm_options,
            main_class: "kafka.Kafka",
            ports,
            folder,
            process: None,
        };
        node.write_properties(&format!("{text}{extra}log.dirs={}\n", data.display()))?;
        Ok(node)
    };
    let mut nodes = Vec::new();
    for id in 1..=wanted.brokers {
        let port = Port::claim()?;
        let combined = (!apart).then_some(controller_address.as_str());
        let text = broker_properties(id, wanted.brokers, &port.address(), combined, &voters);
        nodes.push(node(id, vec![port], text)?);
    }
    if apart {
        let text = controller_properties(&controller_address, &voters);
        nodes.push(node(CONTROLLER_ID, vec![controller], text)?);
    } else if let Some(broker) = nodes.first_mut() {
        broker.ports.push(controller);
    }
    Ok(nodes)
}

/// Of one broker; of the controller too, when it has none apart.
fn broker_properties(
    id: usize,
    brokers: usize,
    address: &str,
    controller: Option<&str>,
    voters: &str,
) -> String {
    let plaintext = format!("PLAINTEXT://{address}");
    let (roles, listeners) = match controller {
        Some(controller) => (
            "broker,controller",
            format!("{plaintext},CONTROLLER://{controller}"),
        ),
        None => ("broker", plaintext.clone()),
    };
    let replicas = brokers.min(3);
    format!(
        "process.roles={roles}\nnode.id={id}\nlisteners={listeners}\n\
         advertised.listeners={plaintext}\ninter.broker.listener.name=PLAINTEXT\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\n\
         offsets.topic.replication.factor={replicas}\n\
         transaction.state.log.replication.factor={replicas}\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         {SMALL_CLUSTER}"
    )
}

/// Of a controller that is no broker.
fn controller_properties(address: &str, voters: &str) -> String {
    format!(
        "process.roles=controller\nnode.id={CONTROLLER_ID}\n\
         listeners=CONTROLLER://{address}\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.voters={voters}\n"
    )
}
