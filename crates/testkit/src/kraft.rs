//! Clusters with KRaft (3.3 and later).

use std::path::Path;

use anyhow::Result;

use crate::jars::Jars;
use crate::node::Node;
use crate::ports::Port;
use crate::quick_start::{QuickStart, cluster_id};
use crate::{RealKafkaBuilder, SlowLink};

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

/// All listeners a broker may have. `FAR` is reached through a [`SlowLink`].
const PROTOCOLS: &str = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT";

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
    let node = |id: usize, ports: Vec<Port>, link, text: String| -> Result<Node> {
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
            link,
            folder,
            process: None,
        };
        node.write_properties(&format!("{text}{extra}log.dirs={}\n", data.display()))?;
        Ok(node)
    };
    let mut nodes = Vec::new();
    for id in 1..=wanted.brokers {
        let mut ports = vec![Port::claim()?];
        let mut listeners = Listeners::new(&ports[0].address());
        if !apart {
            listeners
                .here
                .push(format!("CONTROLLER://{controller_address}"));
        }
        let mut link = None;
        if let Some(line) = wanted.slow_link {
            let far = Port::claim()?;
            let slow = SlowLink::start(&far.address(), line)?;
            listeners.here.push(format!("FAR://{}", far.address()));
            listeners
                .advertised
                .push(format!("FAR://{}", slow.address()));
            ports.push(far);
            link = Some(slow);
        }
        let text = broker_properties(id, wanted.brokers, &listeners, &voters);
        nodes.push(node(id, ports, link, text)?);
    }
    if apart {
        let text = controller_properties(&controller_address, &voters);
        nodes.push(node(CONTROLLER_ID, vec![controller], None, text)?);
    } else if let Some(broker) = nodes.first_mut() {
        broker.ports.push(controller);
    }
    Ok(nodes)
}

/// Where a broker listens and where clients are told to connect.
struct Listeners {
    here: Vec<String>,
    advertised: Vec<String>,
}

impl Listeners {
    fn new(address: &str) -> Self {
        let plaintext = format!("PLAINTEXT://{address}");
        Self {
            here: vec![plaintext.clone()],
            advertised: vec![plaintext],
        }
    }
}

/// Of one broker; of the controller too, when it has none apart.
fn broker_properties(id: usize, brokers: usize, listeners: &Listeners, voters: &str) -> String {
    let combined = listeners
        .here
        .iter()
        .any(|here| here.starts_with("CONTROLLER"));
    let roles = if combined {
        "broker,controller"
    } else {
        "broker"
    };
    let (listeners, advertised) = (listeners.here.join(","), listeners.advertised.join(","));
    let replicas = brokers.min(3);
    format!(
        "process.roles={roles}\nnode.id={id}\nlisteners={listeners}\n\
         advertised.listeners={advertised}\ninter.broker.listener.name=PLAINTEXT\n\
         listener.security.protocol.map={PROTOCOLS}\n\
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
