//! A Kafka client that moves record batches without decoding them. It knows nothing of mirroring or Connect.

pub mod batch;
