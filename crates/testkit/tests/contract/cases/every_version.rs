//! Every version that a broker offers is answered: fields that a version has no room for are left
//! out.

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::fetch_request::FetchTopic;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::Request;
use testkit::wire::{Wire, text};

use crate::batch::Batch;
use crate::lab::{Ask, Bench, Lab, creatable, produce_request};

super::cases! {
    every_version_for_reading_and_writing,
    every_version_about_topics,
    every_version_about_groups,
    every_version_about_producers,
}

/// Sends a request in every version that both the broker and the codec have.
async fn sweep<R: Request>(wire: &mut Wire, request: impl Fn(i16) -> R) -> Result<()> {
    let api = ApiKey::try_from(R::KEY).ok().context("a known API")?;
    let (min, max) = wire
        .versions(api)
        .with_context(|| format!("{api:?} is offered"))?;
    let versions = min.max(R::VERSIONS.min)..=max.min(R::VERSIONS.max);
    ensure!(!versions.is_empty(), "{api:?} has versions");
    for version in versions {
        let answer = wire.call(&request(version), version).await;
        answer.with_context(|| format!("{api:?} version {version}"))?;
    }
    Ok(())
}

async fn every_version_for_reading_and_writing(lab: &Lab) -> Result<()> {
    let Bench {
        topic,
        id,
        mut wire,
        ..
    } = lab.bench(&[]).await?;

    sweep(&mut wire, |version| {
        let mut request = produce_request(&topic, Some(Batch::of(1).bytes()));
        if version >= 13 {
            request.topic_data[0].topic_id = id;
            request.topic_data[0].name = TopicName::default();
        }
        request
    })
    .await?;
    sweep(&mut wire, |version| {
        let wanted = FetchTopic::default().with_partitions(vec![Ask::from(0).partition(0)]);
        let wanted = if version >= 13 {
            wanted.with_topic_id(id)
        } else {
            wanted.with_topic(topic.clone())
        };
        let epoch = if version >= 7 { 0 } else { -1 };
        Ask::from(0)
            .request()
            .with_session_epoch(epoch)
            .with_topics(vec![wanted])
    })
    .await?;
    for timestamp in [-1, -2, 0] {
        sweep(&mut wire, |_| {
            let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
            let wanted = ListOffsetsTopic::default()
                .with_name(topic.clone())
                .with_partitions(vec![partition.with_current_leader_epoch(-1)]);
            ListOffsetsRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_topics(vec![wanted])
        })
        .await?;
    }
    sweep(&mut wire, |version| {
        let partition = OffsetForLeaderPartition::default().with_current_leader_epoch(-1);
        let wanted = OffsetForLeaderTopic::default()
            .with_topic(topic.clone())
            .with_partitions(vec![partition]);
        let replica = BrokerId(if version >= 3 { -1 } else { -2 });
        OffsetForLeaderEpochRequest::default()
            .with_replica_id(replica)
            .with_topics(vec![wanted])
    })
    .await?;
    sweep(&mut wire, |_| {
        let wanted = DeleteRecordsTopic::default()
            .with_name(topic.clone())
            .with_partitions(vec![DeleteRecordsPartition::default()]);
        DeleteRecordsRequest::default()
            .with_topics(vec![wanted])
            .with_timeout_ms(5_000)
    })
    .await
}

async fn every_version_about_topics(lab: &Lab) -> Result<()> {
    let Bench {
        topic, mut wire, ..
    } = lab.bench(&[]).await?;

    sweep(&mut wire, |_| ApiVersionsRequest::default()).await?;
    for topic in [topic.clone(), lab.new_name()] {
        sweep(&mut wire, |version| {
            let wanted = MetadataRequestTopic::default().with_name(Some(topic.clone()));
            MetadataRequest::default()
                .with_topics(Some(vec![wanted]))
                .with_allow_auto_topic_creation(version < 4)
        })
        .await?;
    }
    sweep(&mut wire, |version| {
        let wanted = if version >= 4 {
            creatable(&lab.new_name(), -1, -1, &[])
        } else {
            let on_one = CreatableReplicaAssignment::default().with_broker_ids(vec![BrokerId(1)]);
            creatable(&lab.new_name(), -1, -1, &[]).with_assignments(vec![on_one])
        };
        CreateTopicsRequest::default()
            .with_topics(vec![wanted])
            .with_timeout_ms(5_000)
    })
    .await?;
    sweep(&mut wire, |_| {
        CreatePartitionsRequest::default().with_timeout_ms(5_000)
    })
    .await?;
    sweep(&mut wire, |version| {
        let names = if version < 6 {
            vec![lab.new_name()]
        } else {
            Vec::new()
        };
        DeleteTopicsRequest::default()
            .with_topic_names(names)
            .with_timeout_ms(5_000)
    })
    .await?;
    sweep(&mut wire, |_| {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(topic.0.clone())
            .with_configuration_keys(None);
        DescribeConfigsRequest::default().with_resources(vec![resource])
    })
    .await?;
    sweep(&mut wire, |_| IncrementalAlterConfigsRequest::default()).await?;
    sweep(&mut wire, |_| DescribeClusterRequest::default()).await
}

async fn every_version_about_groups(lab: &Lab) -> Result<()> {
    let Bench {
        topic, mut wire, ..
    } = lab.bench(&[]).await?;
    let id = GroupId(text(format!("group-{}", &*lab.new_name())));
    let name = || topic.clone();

    sweep(&mut wire, |version| match version {
        ..4 => FindCoordinatorRequest::default().with_key(id.0.clone()),
        _ => FindCoordinatorRequest::default().with_coordinator_keys(vec![id.0.clone()]),
    })
    .await?;
    sweep(&mut wire, |version| {
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(1);
        let wanted = OffsetCommitRequestTopic::default()
            .with_name(name())
            .with_partitions(vec![partition.with_committed_leader_epoch(-1)]);
        let retention = if (2..=4).contains(&version) {
            1_000
        } else {
            -1
        };
        OffsetCommitRequest::default()
            .with_group_id(id.clone())
            .with_generation_id_or_member_epoch(-1)
            .with_retention_time_ms(retention)
            .with_topics(vec![wanted])
    })
    .await?;
    sweep(&mut wire, |version| match version {
        ..8 => {
            let wanted = OffsetFetchRequestTopic::default()
                .with_name(name())
                .with_partition_indexes(vec![0]);
            OffsetFetchRequest::default()
                .with_group_id(id.clone())
                .with_topics(Some(vec![wanted]))
        }
        _ => {
            let group = OffsetFetchRequestGroup::default()
                .with_group_id(id.clone())
                .with_member_epoch(-1)
                .with_topics(None);
            OffsetFetchRequest::default().with_groups(vec![group])
        }
    })
    .await?;
    sweep(&mut wire, |_| {
        let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
        JoinGroupRequest::default()
            .with_group_id(id.clone())
            .with_session_timeout_ms(6_000)
            .with_member_id(text("nobody"))
            .with_protocol_type(text("other"))
            .with_protocols(vec![protocol])
    })
    .await?;
    sweep(&mut wire, |_| {
        SyncGroupRequest::default().with_group_id(id.clone())
    })
    .await?;
    sweep(&mut wire, |_| {
        HeartbeatRequest::default().with_group_id(id.clone())
    })
    .await?;
    sweep(&mut wire, |version| {
        let request = LeaveGroupRequest::default().with_group_id(id.clone());
        if version < 3 {
            request
        } else {
            request.with_members(vec![MemberIdentity::default()])
        }
    })
    .await?;
    sweep(&mut wire, |_| ListGroupsRequest::default()).await?;
    sweep(&mut wire, |_| {
        DescribeGroupsRequest::default().with_groups(vec![id.clone()])
    })
    .await?;
    sweep(&mut wire, |_| {
        DeleteGroupsRequest::default().with_groups_names(vec![id.clone()])
    })
    .await
}

async fn every_version_about_producers(lab: &Lab) -> Result<()> {
    let Bench {
        topic, mut wire, ..
    } = lab.bench(&[]).await?;
    let id = TransactionalId(text(format!("id-{}", &*lab.new_name())));

    sweep(&mut wire, |_| {
        InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(1)
    })
    .await?;
    sweep(&mut wire, |version| match version {
        ..4 => AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(id.clone())
            .with_v3_and_below_producer_id(ProducerId(5)),
        _ => {
            let wanted = AddPartitionsToTxnTopic::default()
                .with_name(topic.clone())
                .with_partitions(vec![0]);
            let transaction = AddPartitionsToTxnTransaction::default()
                .with_transactional_id(id.clone())
                .with_topics(vec![wanted]);
            AddPartitionsToTxnRequest::default().with_transactions(vec![transaction])
        }
    })
    .await?;
    sweep(&mut wire, |_| {
        AddOffsetsToTxnRequest::default().with_transactional_id(id.clone())
    })
    .await?;
    sweep(&mut wire, |_| {
        EndTxnRequest::default().with_transactional_id(id.clone())
    })
    .await?;
    sweep(&mut wire, |_| {
        TxnOffsetCommitRequest::default().with_transactional_id(id.clone())
    })
    .await?;
    sweep(&mut wire, |_| DescribeProducersRequest::default()).await?;
    sweep(&mut wire, |_| WriteTxnMarkersRequest::default()).await
}
