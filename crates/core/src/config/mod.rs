//! From the text of an `mm2.properties` to what is true for each flow.
//!
//! ```text
//! properties   text to keys and values with line numbers, as the JVM reads them
//! keys         every key that exists: type, default, meaning
//! place, lint  what each line is, and what is wrong with it
//! resolve      which value reaches which worker, connector and client, and from where
//! build, flow  typed values only
//! flows        which flows there are, and what is wrong between lines
//! circles      which flows may copy topics round and round
//! ```
//!
//! [`check`] does it all. It reads no files and asks no cluster.

mod build;
mod circles;
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
#[cfg(test)]
mod reports;
mod resolve;
pub mod secret;
mod suggest;
mod value;

use std::sync::Arc;

pub use flow::{FlowConfig, MirrorConfig};
pub use problem::{Problem, Severity};
pub use reader::{Section, Setting};
pub use resolve::Origin;

use crate::circles::Circles;
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
    /// The values in effect for the process as a whole, likewise.
    pub process: Option<Section>,
}

/// Reads the bytes of an `mm2.properties`. With `targets`, only flows to these clusters are run
/// (`--clusters`).
pub fn check(bytes: &[u8], targets: Option<&[String]>) -> Report {
    let mut problems = Problems::default();
    let bytes = text(bytes, &mut problems);
    let properties = Properties::parse(bytes);
    if problems.has_errors() && bytes.is_empty() {
        return Report {
            problems: problems.into_sorted(),
            config: None,
            explained: Vec::new(),
            process: None,
        };
    }
    let aliases = flows::aliases(&properties, &mut problems);
    lint::lines(&properties, &aliases, &mut problems);

    let resolver = Resolver::new(&properties);
    let pairs = flows::pairs(&resolver, &aliases);
    let mut patterns = build::Patterns::default();
    let mut built: Vec<_> = pairs
        .iter()
        .map(|pair| build::flow(&resolver, pair, &mut patterns))
        .collect();
    let circles = Arc::new(Circles::of(built.iter().map(|built| &built.config)));
    flows::keep(&mut built, &aliases, targets, &mut problems);
    flows::check(&resolver, &built, &mut problems);
    circles::check(&resolver, &circles, &mut problems);
    for built in &mut built {
        built.config.circles = Arc::clone(&circles);
    }

    let (buffer_memory_bytes, process) = build::process(&resolver);
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
        config: (!failed).then_some(MirrorConfig {
            flows: configs,
            buffer_memory_bytes,
        }),
        explained,
        process: Some(process),
    }
}

/// What of a file is text: nothing, if it is something else, and all behind a byte order mark.
fn text<'a>(bytes: &'a [u8], problems: &mut Problems) -> &'a [u8] {
    if bytes.contains(&0) || bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        problems.push(
            Problem::error("this is not a properties file: it holds bytes that are no text")
                .hint("give an mm2.properties, saved as plain text in one byte per character"),
        );
        return &[];
    }
    let Some(text) = bytes.strip_prefix(b"\xef\xbb\xbf") else {
        return bytes;
    };
    let what = "the file begins with a byte order mark";
    // Java takes the mark for the beginning of a key; where no key follows, nothing is lost by it.
    let problem = match text.first() {
        None | Some(b'#' | b'!' | b'\r' | b'\n') => Problem::warning(what),
        Some(_) => Problem::error(format!("{what}, which would be part of the first key")),
    };
    problems.push(problem.hint("save it without BOM"));
    text
}

impl MirrorConfig {
    /// The flows of a text that is known to be right, as tests write it.
    ///
    /// # Errors
    /// All problems, one a line, if it isn't.
    pub fn parse(text: &str) -> Result<Self, String> {
        let report = check(text.as_bytes(), None);
        let lines = report.problems.iter().map(Problem::to_string);
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
    use proptest::prelude::*;

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

    #[test]
    fn kafkas_own_example_has_no_problems() {
        let text = "clusters = A, B\n\
            A.bootstrap.servers = A_host1:9092, A_host2:9092\n\
            B.bootstrap.servers = B_host1:9092, B_host2:9092\n\
            A->B.enabled = true\nA->B.topics = .*\nB->A.enabled = true\nB->A.topics = .*\n\
            replication.factor=1\ncheckpoints.topic.replication.factor=1\n\
            heartbeats.topic.replication.factor=1\noffset-syncs.topic.replication.factor=1\n\
            offset.storage.replication.factor=1\nstatus.storage.replication.factor=1\n\
            config.storage.replication.factor=1\n";

        assert_eq!(check(text.as_bytes(), None).problems, []);
    }

    #[test]
    fn a_key_of_a_longer_alias_is_not_unknown_to_the_shorter_one() {
        let text = include_bytes!("../../tests/golden/derive/aliases.properties");

        let problems = check(text, None).problems;

        assert!(
            !problems
                .iter()
                .any(|problem| problem.message.contains("nobody knows"))
        );
    }

    fn line() -> impl Strategy<Value = String> {
        let prefix = prop::sample::select(vec!["", "a.", "b.", "a->b.", "b->a.", "c->a.", "a.b."]);
        let middle = prop::sample::select(vec!["", "producer.", "source.consumer.", "admin.", "x"]);
        let names: Vec<_> = keys::Table::ALL
            .iter()
            .flat_map(|t| t.keys())
            .map(|k| k.name)
            .collect();
        let name = prop::sample::select(names);
        let value = prop::sample::select(vec![
            "",
            "true",
            "yes",
            "1",
            "-1",
            "0",
            "a:1",
            "a, b",
            "(x",
            ".*",
            "${p:k}",
            "\\u12",
            "9999999999999999999",
        ]);
        (prefix, middle, name, value).prop_map(|(p, m, n, v)| format!("{p}{m}{n} = {v}\n"))
    }

    proptest! {
        // A case compiles several patterns.
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_lines_are_either_a_configuration_or_have_an_error(
            lines in prop::collection::vec(line(), 0..12), head in any::<bool>()) {
            let head = if head { "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n" } else { "" };
            let report = check(format!("{head}{}", lines.concat()).as_bytes(), None);

            let errors = report.problems.iter().filter(|p| p.severity == Severity::Error).count();
            prop_assert_eq!(report.config.is_some(), errors == 0);
            for flow in report.config.iter().flat_map(|config| &config.flows) {
                prop_assert!(!flow.source.admin.bootstrap.is_empty());
                prop_assert!(!flow.source.consumer.client.bootstrap.is_empty());
                prop_assert!(!flow.writer.client.bootstrap.is_empty());
                prop_assert!(!flow.worker.client.bootstrap.is_empty());
            }
        }
    }
}
