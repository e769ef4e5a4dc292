//! Records between real clusters, with Kafka's own client as the judge and Java MirrorMaker 2
//! beside us.
//!
//! All tests share two clusters. Each has a flow of its own between them, whose source alias tells
//! its topics apart.

mod brokers;
mod fidelity;
mod fight;
mod flow;
mod hands;
mod loads;
mod refusals;
mod restart;
mod status;
mod surprises;
mod takeover;
