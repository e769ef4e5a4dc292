//! Clusters with ZooKeeper, for releases that have nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::RealKafkaBuilder;
use crate::jars::{Jars, KafkaVersion};
use crate::kraft::SMALL_CLUSTER;
use crate::node::Node;
use crate::ports::Port;
use crate::quick_start::SHORT_LIFE;

/// Node id of ZooKeeper; brokers count from 1.
const ZOOKEEPER_ID: usize = 100;

/// Makes the folders of all nodes under `home`: the brokers by their id, then ZooKeeper.
pub(crate) fn lay_out(wanted: &RealKafkaBuilder, jars: &Jars, home: &Path) -> Result<Vec<Node>> {
    let zookeeper = zookeeper(home)?;
    let extra = wanted.extra_properties();
    let mut nodes = Vec::new();
    for id in 1..=wanted.brokers {
        let folder = home.join(format!("node-{id}"));
        let port = Port::claim()?;
        let text = format!(
            "broker.id={id}\nlisteners=PLAINTEXT://{}\nzookeeper.connect={}\n\
             zookeeper.session.timeout.ms=9000\nzookeeper.connection.timeout.ms=60000\n\
             offsets.topic.replication.factor={replicas}\n\
             transaction.state.log.replication.factor={replicas}\n\
             {SMALL_CLUSTER}{extra}log.dirs={}\n",
            port.address(),
            zookeeper.address(),
            Node::data(&folder).display(),
            replicas = wanted.brokers.min(3),
        );
        let node = Node {
            id,
            jars: jars.clone(),
            jvm_options: jvm_options(&wanted.heap),
            main_class: "kafka.Kafka",
            ports: vec![port],
            link: None,
            folder,
            process: None,
        };
        node.write_properties(&text)?;
        nodes.push(node);
    }
    nodes.push(zookeeper);
    Ok(nodes)
}

/// ZooKeeper 3.5 as it comes with 2.8.2: that of 1.1.1 lacks jars, and old clients get on with it.
fn zookeeper(home: &Path) -> Result<Node> {
    let folder = home.join("zookeeper");
    let port = Port::claim()?;
    let data = Node::data(&folder);
    fs::create_dir_all(&data).context("make the folder of ZooKeeper")?;
    // Sessions may be as short as two ticks.
    let text = format!(
        "dataDir={}\nclientPortAddress=127.0.0.1\nclientPort={}\nadmin.enableServer=false\n\
         tickTime=500\n",
        data.display(),
        port.number(),
    );
    let node = Node {
        id: ZOOKEEPER_ID,
        jars: Jars::resolve(KafkaVersion::V2_8_2)?,
        jvm_options: jvm_options("128m"),
        main_class: "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ports: vec![port],
        link: None,
        folder,
        process: None,
    };
    node.write_properties(&text)?;
    Ok(node)
}

fn jvm_options(heap: &str) -> Vec<String> {
    SHORT_LIFE
        .map(str::to_owned)
        .into_iter()
        .chain([format!("-Xmx{heap}")])
        .collect()
}
