//! Groups of the classic protocol, and their positions.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::*;
use testkit::wire::{Wire, text};

use crate::lab::{Bench, Lab, expect};

super::cases! {
    a_new_member_is_given_its_id_first,
    two_members_share_an_assignment,
    a_member_that_leaves_starts_a_rebalance,
    positions_are_committed_from_outside_while_there_are_no_members,
    positions_without_a_commit_are_minus_one,
    strangers_are_refused,
    groups_are_listed_described_and_deleted,
}

const TRIES: usize = 600;
/// Version 0, no topics, no user data: brokers do parse it.
const SUBSCRIPTION: &[u8] = &[0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];

struct Group {
    id: GroupId,
    address: String,
    wire: Wire,
}

impl Group {
    async fn new(lab: &Lab) -> Result<Self> {
        let id = GroupId(text(format!("group-{}", &*lab.new_name())));
        let mut wire = lab.wire().await?;
        let request = FindCoordinatorRequest::default()
            .with_key_type(0)
            .with_coordinator_keys(vec![id.0.clone()]);
        for _ in 0..TRIES {
            let response = wire.call(&request, 4).await?;
            let found = response.coordinators.first().context("a coordinator")?;
            if found.error_code == 0 {
                let address = format!("{}:{}", &*found.host, found.port);
                let wire = Wire::connect(&address).await?;
                let mut group = Group { id, address, wire };
                group.until_loaded().await?;
                return Ok(group);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("no coordinator is found")
    }

    /// Right after its election a coordinator is still loading.
    async fn until_loaded(&mut self) -> Result<()> {
        for _ in 0..TRIES {
            let (code, _) = self.positions(None).await?;
            if !matches!(code, 14..=16) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the coordinator does not load")
    }

    fn join_request(&self, member: &str) -> JoinGroupRequest {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(Bytes::from_static(SUBSCRIPTION));
        JoinGroupRequest::default()
            .with_group_id(self.id.clone())
            .with_session_timeout_ms(30_000)
            .with_rebalance_timeout_ms(30_000)
            .with_member_id(text(member))
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol])
    }

    /// Joins as a new member; answers the member's id.
    async fn join(&mut self) -> Result<JoinGroupResponse> {
        let first = self.wire.call(&self.join_request(""), 7).await?;
        expect("a new member", first.error_code, 79)?;
        self.wire
            .call(&self.join_request(&first.member_id), 7)
            .await
    }

    fn sync_request(&self, joined: &JoinGroupResponse, others: &[&str]) -> SyncGroupRequest {
        let assignment = |member: &str| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(Bytes::from(format!("for {member}")))
        };
        SyncGroupRequest::default()
            .with_group_id(self.id.clone())
            .with_generation_id(joined.generation_id)
            .with_member_id(joined.member_id.clone())
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(others.iter().map(|member| assignment(member)).collect())
    }

    async fn heartbeat(&mut self, generation: i32, member: &str) -> Result<i16> {
        let request = HeartbeatRequest::default()
            .with_group_id(self.id.clone())
            .with_generation_id(generation)
            .with_member_id(text(member));
        Ok(self.wire.call(&request, 4).await?.error_code)
    }

    async fn leave(&mut self, member: &str) -> Result<i16> {
        let member = MemberIdentity::default().with_member_id(text(member));
        let request = LeaveGroupRequest::default()
            .with_group_id(self.id.clone())
            .with_members(vec![member]);
        let response = self.wire.call(&request, 4).await?;
        Ok(response.members.first().context("a member")?.error_code)
    }

    /// Commits a position in partition 0 as `member` of `generation`.
    async fn commit(
        &mut self,
        topic: &TopicName,
        offset: i64,
        generation: i32,
        member: &str,
    ) -> Result<i16> {
        let partition = OffsetCommitRequestPartition::default()
            .with_committed_offset(offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(Some(text("note")));
        let topic = OffsetCommitRequestTopic::default()
            .with_name(topic.clone())
            .with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(self.id.clone())
            .with_generation_id_or_member_epoch(generation)
            .with_member_id(text(member))
            .with_topics(vec![topic]);
        Ok(self.wire.call(&request, 8).await?.topics[0].partitions[0].error_code)
    }

    /// Committed offsets in partition 0 of a topic, or all there are.
    async fn positions(&mut self, topic: Option<&TopicName>) -> Result<(i16, Vec<i64>)> {
        let topics = topic.map(|topic| {
            let topic = OffsetFetchRequestTopics::default().with_name(topic.clone());
            vec![topic.with_partition_indexes(vec![0])]
        });
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(self.id.clone())
            .with_topics(topics);
        let request = OffsetFetchRequest::default().with_groups(vec![group]);
        let response = self.wire.call(&request, 8).await?;
        let group = response.groups.first().context("a group")?;
        let parts = group.topics.iter().flat_map(|topic| &topic.partitions);
        Ok((
            group.error_code,
            parts.map(|part| part.committed_offset).collect(),
        ))
    }
}

async fn a_new_member_is_given_its_id_first(lab: &Lab) -> Result<()> {
    let mut group = Group::new(lab).await?;

    let joined = group.join().await?;

    expect(
        "code and generation",
        (joined.error_code, joined.generation_id),
        (0, 1),
    )?;
    expect("the only member leads", &joined.leader, &joined.member_id)?;
    expect("members", joined.members.len(), 1)?;
    expect("protocol", joined.protocol_name.as_deref(), Some("range"))
}

async fn two_members_share_an_assignment(lab: &Lab) -> Result<()> {
    let mut first = Group::new(lab).await?;
    let wire = Wire::connect(&first.address).await?;
    let mut second = Group {
        id: first.id.clone(),
        address: first.address.clone(),
        wire,
    };
    let alone = first.join().await?;
    let sync = first.sync_request(&alone, &[&alone.member_id]);
    expect("sync", first.wire.call(&sync, 5).await?.error_code, 0)?;

    let rejoin = async {
        while first
            .heartbeat(alone.generation_id, &alone.member_id)
            .await?
            == 0
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let request = first.join_request(&alone.member_id);
        first.wire.call(&request, 7).await
    };
    let (one, two) = tokio::join!(rejoin, second.join());
    let (one, two) = (one?, two?);
    expect("codes", (one.error_code, two.error_code), (0, 0))?;
    expect(
        "generations",
        (one.generation_id, two.generation_id),
        (2, 2),
    )?;
    expect("one leads", &one.leader, &two.leader)?;
    expect(
        "only the leader sees members",
        one.members.len() + two.members.len(),
        2,
    )?;
    let members: [&str; 2] = [&one.member_id, &two.member_id];
    let leads = |joined: &JoinGroupResponse| joined.leader == joined.member_id;
    let sync_one = first.sync_request(&one, if leads(&one) { &members } else { &[] });
    let sync_two = second.sync_request(&two, if leads(&two) { &members } else { &[] });
    let (one_synced, two_synced) = tokio::join!(
        first.wire.call(&sync_one, 5),
        second.wire.call(&sync_two, 5)
    );

    let (one_synced, two_synced) = (one_synced?, two_synced?);
    expect(
        "first's",
        &one_synced.assignment[..],
        format!("for {}", members[0]).as_bytes(),
    )?;
    expect(
        "second's",
        &two_synced.assignment[..],
        format!("for {}", members[1]).as_bytes(),
    )?;
    expect("heartbeat", first.heartbeat(2, members[0]).await?, 0)
}

async fn a_member_that_leaves_starts_a_rebalance(lab: &Lab) -> Result<()> {
    let mut group = Group::new(lab).await?;
    let joined = group.join().await?;
    let member = joined.member_id.to_string();
    let sync = group.sync_request(&joined, &[&member]);
    expect("sync", group.wire.call(&sync, 5).await?.error_code, 0)?;

    expect("leave", group.leave(&member).await?, 0)?;

    expect("heartbeat", group.heartbeat(1, &member).await?, 25)?;
    expect("leave again", group.leave(&member).await?, 25)
}

async fn positions_are_committed_from_outside_while_there_are_no_members(lab: &Lab) -> Result<()> {
    let Bench { topic, .. } = lab.bench(&[]).await?;
    let mut group = Group::new(lab).await?;

    expect("forward", group.commit(&topic, 100, -1, "").await?, 0)?;
    expect("backward", group.commit(&topic, 7, -1, "").await?, 0)?;
    expect(
        "position",
        group.positions(Some(&topic)).await?,
        (0, vec![7]),
    )?;
    expect("all positions", group.positions(None).await?, (0, vec![7]))?;
    let joined = group.join().await?;
    let sync = group.sync_request(&joined, &[&joined.member_id]);
    expect("sync", group.wire.call(&sync, 5).await?.error_code, 0)?;

    expect(
        "while there is a member",
        group.commit(&topic, 8, -1, "").await?,
        25,
    )?;
    let as_member = group
        .commit(&topic, 9, joined.generation_id, &joined.member_id)
        .await?;
    expect("as that member", as_member, 0)?;
    expect(
        "position",
        group.positions(Some(&topic)).await?,
        (0, vec![9]),
    )
}

async fn positions_without_a_commit_are_minus_one(lab: &Lab) -> Result<()> {
    let Bench { topic, .. } = lab.bench(&[]).await?;
    let mut group = Group::new(lab).await?;

    expect(
        "asked for",
        group.positions(Some(&topic)).await?,
        (0, vec![-1]),
    )?;
    expect("all", group.positions(None).await?, (0, vec![]))?;
    let unknown = lab.new_name();
    expect("unknown topic", group.commit(&unknown, 1, -1, "").await?, 3)
}

async fn strangers_are_refused(lab: &Lab) -> Result<()> {
    let mut group = Group::new(lab).await?;
    expect("no such group", group.heartbeat(1, "stranger").await?, 25)?;
    let joined = group.join().await?;
    let sync = group.sync_request(&joined, &[&joined.member_id]);
    expect("sync", group.wire.call(&sync, 5).await?.error_code, 0)?;

    expect("no such member", group.heartbeat(1, "stranger").await?, 25)?;
    expect(
        "another generation",
        group.heartbeat(9, &joined.member_id).await?,
        22,
    )?;
    let wrong = SyncGroupRequest::default()
        .with_group_id(group.id.clone())
        .with_generation_id(9)
        .with_member_id(joined.member_id.clone());
    expect("sync", group.wire.call(&wrong, 4).await?.error_code, 22)
}

async fn groups_are_listed_described_and_deleted(lab: &Lab) -> Result<()> {
    let Bench { topic, .. } = lab.bench(&[]).await?;
    let mut group = Group::new(lab).await?;
    expect("commit", group.commit(&topic, 1, -1, "").await?, 0)?;

    let listed = group.wire.call(&ListGroupsRequest::default(), 5).await?;
    let own = listed
        .groups
        .iter()
        .find(|listed| listed.group_id == group.id);
    let own = own.context("the group is listed")?;
    expect("state", &*own.group_state, "Empty")?;
    expect("type", own.group_type.to_lowercase(), "classic".to_owned())?;
    let describe = DescribeGroupsRequest::default().with_groups(vec![group.id.clone()]);
    let described = group.wire.call(&describe, 5).await?;
    let state = (
        described.groups[0].error_code,
        described.groups[0].group_state.to_string(),
    );
    expect("described", state, (0, "Empty".to_owned()))?;

    let delete = DeleteGroupsRequest::default().with_groups_names(vec![group.id.clone()]);
    let deleted = group.wire.call(&delete, 2).await?;
    let again = group.wire.call(&delete, 2).await?;
    ensure!(deleted.results[0].error_code == 0, "{deleted:?}");
    expect("again", again.results[0].error_code, 69)?;
    let gone = group.wire.call(&describe, 5).await?;
    let state = (
        gone.groups[0].error_code,
        gone.groups[0].group_state.to_string(),
    );
    expect("described when gone", state, (0, "Dead".to_owned()))
}
