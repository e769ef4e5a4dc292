//! What tests start: mini-kafka, real Kafka, Java MirrorMaker 2.
