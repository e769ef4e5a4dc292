//! What tests stand on: real Kafka, Java MirrorMaker 2, and our own binary, as processes.
//!
//! ```text
//!   RealKafka   JavaMirrorMaker   Corpus, Load, Comparison   TwinlogProcess   what a test starts
//!       └──────────────┴─────────────────────┴─────────────────────┤
//!   jars (Maven, javac; once)                                ManagedProcess   log, signals, end
//!   Admin (topics, offsets)        eventually (wait)         ports, scratch   where it lives
//! ```
//!
//! [`InMemory`] joins twinlog's client to mini-kafka without sockets; [`wire`] is a client that
//! shares nothing with it.
//!
//! Everything else blocks and works from any thread, with or without a runtime: a test that is
//! async itself runs on the multi-thread flavour. What a test starts ends with its value, and with
//! the test process however that ends. Nothing is skipped: where Kafka can't be had, starting it is
//! an error that says what to do.

mod admin;
mod bench_tools;
mod cluster_pair;
mod eventually;
mod in_memory;
mod jars;
mod java_tools;
mod kraft;
mod leaders;
mod long_line;
mod mirror_maker;
mod moments;
mod node;
mod ports;
mod process;
mod quick_start;
mod real_kafka;
mod scratch;
mod slow_link;
mod topic_dump;
mod twinlog_process;
pub mod wire;
mod zookeeper;

pub use admin::{Admin, TopicSpec};
pub use bench_tools::{FillSpec, Latencies, LatencyProbe, LatencySpec, Percentiles};
pub use cluster_pair::{ClusterPair, shared_pair};
pub use eventually::{GiveUp, eventually, eventually_async};
pub use in_memory::InMemory;
pub use jars::{Jars, KafkaVersion};
pub use java_tools::{Comparison, Corpus, Load, LoadSpec};
pub use long_line::LongLine;
pub use mirror_maker::JavaMirrorMaker;
pub use moments::Moments;
pub use process::{ManagedProcess, Signal};
pub use real_kafka::{RealKafka, RealKafkaBuilder};
pub use scratch::ScratchDir;
pub use slow_link::{Line, SlowLink};
pub use topic_dump::{DumpedRecord, dump_topic};
pub use twinlog_process::TwinlogProcess;
