//! An in-memory Kafka cluster that speaks the wire protocol, for tests and `twinlog demo`.
