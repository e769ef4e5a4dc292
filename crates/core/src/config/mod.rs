//! From the text of an `mm2.properties` to what is true for each flow.
//!
//! ```text
//! properties   text to keys and values with line numbers, as the JVM reads them
//! keys         every key that exists: type, default, meaning
//! place, lint  what each line is, and what is wrong with it
//! resolve      which value reaches which worker, connector and client, and from where
//! build, flow  typed values only
//! flows        which flows there are, and what is wrong between lines
//! ```
//!
//! [`check`] does it all. It reads no files and asks no cluster.

mod build;
#[cfg(test)]
mod derived;
pub mod flow;
mod flows;
pub mod keys;
mod lint;
mod place;
pub mod problem;
pub mod properties;
mod reader;
mod resolve;
pub mod secret;
mod suggest;
mod value;

pub use flow::{FlowConfig, MirrorConfig};
pub use problem::{Problem, Severity};
pub use reader::{Section, Setting};
pub use resolve::Origin;

use crate::ids::Flow;
use problem::Problems;
use properties::Properties;
use resolve::Resolver;

/// What a file means and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// All problems, those of no line first, then in the order of lines.
    pub problems: Vec<Problem>,
    /// What is true; none if there is any error.
    pub config: Option<MirrorConfig>,
    /// Every value that is in effect, per flow, with where it was written. Given even where there
    /// are errors, as far as it could be read.
    pub explained: Vec<(Flow, Vec<Section>)>,
}

/// Reads the bytes of an `mm2.properties`. With `targets`, only flows to these clusters are run
/// (`--clusters`).
pub fn check(bytes: &[u8], targets: Option<&[String]>) -> Report {
    let properties = Properties::parse(bytes);
    let mut problems = Problems::default();
    let aliases = flows::aliases(&properties, &mut problems);
    lint::lines(&properties, &aliases, &mut problems);

    let resolver = Resolver::new(&properties);
    let pairs = flows::pairs(&resolver, &aliases, targets, &mut problems);
    let built: Vec<_> = pairs
        .iter()
        .map(|pair| build::flow(&resolver, pair))
        .collect();
    flows::check(&resolver, &built, &mut problems);

    let failed = problems.has_errors();
    let (configs, explained) = built
        .into_iter()
        .map(|built| {
            let explained = (built.config.flow.clone(), built.sections);
            (built.config, explained)
        })
        .unzip();
    Report {
        problems: problems.into_sorted(),
        config: (!failed).then_some(MirrorConfig { flows: configs }),
        explained,
    }
}

impl MirrorConfig {
    /// The flows of a text that is known to be right, as tests write it.
    ///
    /// # Errors
    /// All problems, one a line, if it isn't.
    pub fn parse(text: &str) -> Result<Self, String> {
        let report = check(text.as_bytes(), None);
        let lines = report.problems.iter().map(|problem| format!("{problem:?}"));
        report
            .config
            .ok_or_else(|| lines.collect::<Vec<_>>().join("\n"))
    }

    /// The flow of this name, such as `us->eu`.
    pub fn flow(&self, name: &str) -> Option<&FlowConfig> {
        self.flows.iter().find(|flow| flow.flow.to_string() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::flow::{BrokerAddress, FlowRole};
    use super::*;

    #[test]
    fn a_file_of_a_few_lines_is_a_flow_and_its_heartbeats_back() {
        let config = MirrorConfig::parse(
            "clusters = us, eu\n\
             us.bootstrap.servers = a:9092\n\
             eu.bootstrap.servers = b:9092\n\
             us->eu.enabled = true\n\
             us->eu.topics = orders.*\n",
        )
        .unwrap();

        let roles: Vec<_> = config
            .flows
            .iter()
            .map(|f| (f.flow.to_string(), f.role))
            .collect();
        assert_eq!(
            roles,
            [
                ("us->eu".to_owned(), FlowRole::Replicates),
                ("eu->us".to_owned(), FlowRole::HeartbeatsOnly),
            ]
        );
        let flow = config.flow("us->eu").unwrap();
        let address = BrokerAddress {
            host: "b".into(),
            port: 9092,
        };
        assert_eq!(flow.writer.client.bootstrap, [address]);
        assert_eq!(
            flow.worker.offsets_topic.name.as_str(),
            "mm2-offsets.us.internal"
        );
        assert_eq!(flow.remote_topic("orders.1").as_str(), "us.orders.1");
    }
}
