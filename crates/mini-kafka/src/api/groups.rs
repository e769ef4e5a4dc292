//! Membership of groups, classic protocol: Join, Sync, Heartbeat, Leave, and what tools ask.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::ResponseError::{
    self, GroupIdNotFound, IllegalGeneration, InvalidGroupId, InvalidSessionTimeout,
    MemberIdRequired, NonEmptyGroup, NotCoordinator, RebalanceInProgress, UnknownMemberId,
};
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::*;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Api, Call, text};
use crate::groups::{Group, Member, Phase};
use crate::refusal::{Refusal, code};
use crate::state::State;

/// Since this version a new member has to come back with the id it was given (KIP-394).
const ID_FIRST: i16 = 4;
/// How long a wait lasts before it looks at silent members again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Only one broker coordinates.
pub(super) fn check_coordinator(call: &Call, state: &State) -> Result<(), Refusal> {
    let here = state
        .controller()
        .is_some_and(|broker| broker.id == call.broker);
    if here {
        Ok(())
    } else {
        Err(NotCoordinator.into())
    }
}

/// Works on a group after silent members were removed, and wakes those who wait for it.
fn with_group<T>(
    call: &Call,
    id: &str,
    work: impl FnOnce(&mut Group) -> Result<T, ResponseError>,
) -> Result<T, Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    let group = state.groups.by_id.get_mut(id).ok_or(UnknownMemberId)?;
    group.expire();
    let outcome = work(group);
    state.groups.changed();
    outcome.map_err(Refusal::from)
}

/// Asks `look` whenever groups changed, until it has an answer.
async fn wait_for<T>(
    call: &Call,
    id: &str,
    mut look: impl FnMut(&mut Group) -> Option<Result<T, ResponseError>>,
) -> Result<T, Refusal> {
    let mut changes = call.state().groups.changes.subscribe();
    loop {
        changes.mark_unchanged();
        let deadline = {
            let mut state = call.state();
            check_coordinator(call, &state)?;
            let group = state.groups.by_id.get_mut(id).ok_or(UnknownMemberId)?;
            let before = (group.phase, group.generation);
            group.expire();
            if let Some(outcome) = look(group) {
                let changed = before != (group.phase, group.generation);
                if changed {
                    state.groups.changed();
                }
                return outcome.map_err(Refusal::from);
            }
            let again = Instant::now() + LOOK_AGAIN;
            group
                .next_deadline()
                .map_or(again, |deadline| deadline.min(again))
        };
        // Both ends of the wait mean the same: look again.
        let _woken = timeout_at(deadline, changes.changed()).await;
    }
}

impl Api for JoinGroupRequest {
    const OURS: (i16, i16) = (0, 9);

    async fn answer(&self, call: &Call) -> Answer<JoinGroupResponse> {
        let joined = match call.whole(|| enter(call, self)) {
            Ok(id) => wait_joined(call, self, id).await,
            Err(refusal) if refusal.code == MemberIdRequired => {
                let response =
                    JoinGroupResponse::default().with_error_code(MemberIdRequired.code());
                let id = text(refusal.message.unwrap_or_default());
                return Answer::Response(no_generation(response.with_member_id(id)));
            }
            Err(refusal) => Err(refusal),
        };
        Answer::Response(joined.unwrap_or_else(|refusal| {
            let response = JoinGroupResponse::default().with_error_code(refusal.code.code());
            no_generation(response.with_member_id(self.member_id.clone()))
        }))
    }
}

fn no_generation(response: JoinGroupResponse) -> JoinGroupResponse {
    response
        .with_generation_id(-1)
        .with_protocol_name(Some(text("")))
}

/// Answers the member's id, or MEMBER_ID_REQUIRED with the id as its message.
fn enter(call: &Call, request: &JoinGroupRequest) -> Result<String, Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    if request.group_id.is_empty() {
        return Err(InvalidGroupId.into());
    }
    if request.session_timeout_ms <= 0 {
        return Err(InvalidSessionTimeout.into());
    }
    let random = state.random.next();
    let group = state.groups.entry(&request.group_id);
    group.expire();
    let instance_id = request.group_instance_id.as_ref().map(ToString::to_string);
    let known_instance = instance_id.as_ref().and_then(|instance| {
        let same = |m: &Member| m.instance_id.as_ref() == Some(instance);
        group
            .members
            .iter()
            .find(|(_, member)| same(member))
            .map(|(id, _)| id.clone())
    });
    let id = match known_instance {
        Some(id) => id,
        None if request.member_id.is_empty() => {
            let id = format!("{}-{random:016x}", call.client_id);
            if call.version >= ID_FIRST && instance_id.is_none() {
                return Err(Refusal::new(MemberIdRequired, id));
            }
            id
        }
        None => request.member_id.to_string(),
    };
    let session_timeout = Duration::from_millis(request.session_timeout_ms as u64);
    let rebalance_timeout = match request.rebalance_timeout_ms {
        ms if ms > 0 => Duration::from_millis(ms as u64),
        _ => session_timeout,
    };
    let offered = request
        .protocols
        .iter()
        .map(|p| (p.name.to_string(), p.metadata.clone()));
    let member = Member::new(
        &call.client_id,
        instance_id,
        offered.collect(),
        session_timeout,
        rebalance_timeout,
    );
    group.join(&id, &request.protocol_type, member)?;
    group.complete_join();
    state.groups.changed();
    Ok(id)
}

async fn wait_joined(
    call: &Call,
    request: &JoinGroupRequest,
    id: String,
) -> Result<JoinGroupResponse, Refusal> {
    wait_for(call, &request.group_id, |group| {
        if !group.members.contains_key(&id) {
            return Some(Err(UnknownMemberId));
        }
        if group.phase == Phase::Preparing {
            return None;
        }
        let members = group
            .members
            .iter()
            .filter(|_| group.leader == id)
            .map(|(id, member)| {
                JoinGroupResponseMember::default()
                    .with_member_id(text(id.as_str()))
                    .with_group_instance_id(member.instance_id.as_deref().map(text))
                    .with_metadata(member.metadata(&group.protocol))
            });
        let response = JoinGroupResponse::default()
            .with_generation_id(group.generation)
            .with_protocol_type(Some(text(group.protocol_type.as_str())))
            .with_protocol_name(Some(text(group.protocol.as_str())))
            .with_leader(text(group.leader.as_str()))
            .with_member_id(text(id.as_str()))
            .with_members(members.collect());
        Some(Ok(response))
    })
    .await
}

impl Api for SyncGroupRequest {
    const OURS: (i16, i16) = (0, 5);

    async fn answer(&self, call: &Call) -> Answer<SyncGroupResponse> {
        let synced = match call.whole(|| offer(call, self)) {
            Ok(()) => wait_synced(call, self).await,
            Err(refusal) => Err(refusal),
        };
        Answer::Response(synced.unwrap_or_else(|refusal| {
            SyncGroupResponse::default().with_error_code(refusal.code.code())
        }))
    }
}

fn offer(call: &Call, request: &SyncGroupRequest) -> Result<(), Refusal> {
    with_group(call, &request.group_id, |group| {
        group.check(&request.member_id, request.generation_id)?;
        group.heard(&request.member_id);
        if group.phase == Phase::Completing && group.leader == *request.member_id {
            let assignments = request.assignments.iter();
            let by_member = assignments.map(|a| (a.member_id.to_string(), a.assignment.clone()));
            group.assign(by_member.collect());
        }
        Ok(())
    })
}

async fn wait_synced(
    call: &Call,
    request: &SyncGroupRequest,
) -> Result<SyncGroupResponse, Refusal> {
    wait_for(call, &request.group_id, |group| {
        if let Err(code) = group.check(&request.member_id, request.generation_id) {
            return Some(Err(if code == IllegalGeneration {
                RebalanceInProgress
            } else {
                code
            }));
        }
        match group.phase {
            Phase::Completing => None,
            Phase::Stable => {
                let assignment = group.members[&*request.member_id].assignment.clone();
                let response = SyncGroupResponse::default()
                    .with_protocol_type(Some(text(group.protocol_type.as_str())))
                    .with_protocol_name(Some(text(group.protocol.as_str())));
                Some(Ok(response.with_assignment(assignment)))
            }
            Phase::Empty | Phase::Preparing => Some(Err(RebalanceInProgress)),
        }
    })
    .await
}

impl Api for HeartbeatRequest {
    const OURS: (i16, i16) = (0, 4);

    async fn answer(&self, call: &Call) -> Answer<HeartbeatResponse> {
        let outcome = call.whole(|| {
            with_group(call, &self.group_id, |group| {
                group.check(&self.member_id, self.generation_id)?;
                group.heard(&self.member_id);
                if group.phase == Phase::Preparing {
                    Err(RebalanceInProgress)
                } else {
                    Ok(())
                }
            })
        });
        Answer::Response(HeartbeatResponse::default().with_error_code(code(&outcome)))
    }
}

impl Api for LeaveGroupRequest {
    const OURS: (i16, i16) = (0, 5);

    async fn answer(&self, call: &Call) -> Answer<LeaveGroupResponse> {
        let leave = |id: &str| with_group(call, &self.group_id, |group| group.leave(id));
        let response = LeaveGroupResponse::default();
        if call.version < 3 {
            let outcome = call.whole(|| leave(&self.member_id));
            return Answer::Response(response.with_error_code(code(&outcome)));
        }
        let members = self.members.iter().map(|member| {
            let outcome = call.whole(|| leave(&member.member_id));
            MemberResponse::default()
                .with_member_id(member.member_id.clone())
                .with_group_instance_id(member.group_instance_id.clone())
                .with_error_code(code(&outcome))
        });
        Answer::Response(response.with_members(members.collect()))
    }
}

impl Api for ListGroupsRequest {
    const OURS: (i16, i16) = (0, 5);

    async fn answer(&self, call: &Call) -> Answer<ListGroupsResponse> {
        let refused = call.whole(|| Ok(())).err();
        let state = call.state();
        let coordinates = check_coordinator(call, &state).is_ok();
        let groups = state
            .groups
            .by_id
            .iter()
            .filter(|_| coordinates)
            .filter(|(_, group)| {
                let wanted = &self.states_filter;
                wanted.is_empty()
                    || wanted
                        .iter()
                        .any(|s| s.eq_ignore_ascii_case(group.phase.name()))
            });
        let listed = groups.map(|(id, group)| {
            ListedGroup::default()
                .with_group_id(GroupId(text(id.as_str())))
                .with_protocol_type(text(group.protocol_type.as_str()))
                .with_group_state(text(group.phase.name()))
                .with_group_type(text("classic"))
        });
        let response = ListGroupsResponse::default()
            .with_error_code(refused.map_or(0, |refusal| refusal.code.code()))
            .with_groups(listed.collect());
        Answer::Response(response)
    }
}

impl Api for DescribeGroupsRequest {
    const OURS: (i16, i16) = (0, 6);

    async fn answer(&self, call: &Call) -> Answer<DescribeGroupsResponse> {
        let groups = self.groups.iter().map(|id| {
            let described = call.whole(|| describe(call, id));
            described.unwrap_or_else(|refusal| {
                DescribedGroup::default()
                    .with_error_code(refusal.code.code())
                    .with_group_id(id.clone())
                    .with_group_state(text("Dead"))
            })
        });
        Answer::Response(DescribeGroupsResponse::default().with_groups(groups.collect()))
    }
}

fn describe(call: &Call, id: &GroupId) -> Result<DescribedGroup, Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    let described = DescribedGroup::default().with_group_id(id.clone());
    let Some(group) = state.groups.by_id.get_mut(id.as_str()) else {
        // Version 6 tells an unknown group from a dead one (KIP-1043).
        let unknown = if call.version >= 6 {
            GroupIdNotFound.code()
        } else {
            0
        };
        return Ok(described
            .with_error_code(unknown)
            .with_group_state(text("Dead")));
    };
    group.expire();
    let members = group.members.iter().map(|(id, member)| {
        DescribedGroupMember::default()
            .with_member_id(text(id.as_str()))
            .with_group_instance_id(member.instance_id.as_deref().map(text))
            .with_client_id(text(member.client_id.as_str()))
            .with_client_host(text("/127.0.0.1"))
            .with_member_metadata(member.metadata(&group.protocol))
            .with_member_assignment(member.assignment.clone())
    });
    let members = members.collect();
    Ok(described
        .with_group_state(text(group.phase.name()))
        .with_protocol_type(text(group.protocol_type.as_str()))
        .with_protocol_data(text(group.protocol.as_str()))
        .with_members(members))
}

impl Api for DeleteGroupsRequest {
    const OURS: (i16, i16) = (0, 2);

    async fn answer(&self, call: &Call) -> Answer<DeleteGroupsResponse> {
        let results = self.groups_names.iter().map(|id| {
            let outcome = call.whole(|| delete(call, id));
            DeletableGroupResult::default()
                .with_group_id(id.clone())
                .with_error_code(code(&outcome))
        });
        Answer::Response(DeleteGroupsResponse::default().with_results(results.collect()))
    }
}

fn delete(call: &Call, id: &str) -> Result<(), Refusal> {
    let mut state = call.state();
    check_coordinator(call, &state)?;
    let groups: &mut BTreeMap<String, Group> = &mut state.groups.by_id;
    let group = groups.get_mut(id).ok_or(GroupIdNotFound)?;
    group.expire();
    if !group.members.is_empty() {
        return Err(NonEmptyGroup.into());
    }
    groups.remove(id);
    Ok(())
}
