//! Incremental fetch sessions of one broker (KIP-227, `FetchSession.java`).
//!
//! A session remembers which partitions a client wants and what it last heard of each; a request
//! names changes only, and an answer holds only partitions that have something to say.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError::{
    self, FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use uuid::Uuid;

/// The epoch of a request that opens a session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that wants no session.
const FINAL_EPOCH: i32 = -1;

/// How a client names a topic: by name up to version 12, by id since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopicRef {
    Name(String),
    Id(Uuid),
}

impl TopicRef {
    pub fn of(topic: &FetchTopic, by_id: bool) -> Self {
        if by_id {
            TopicRef::Id(topic.topic_id)
        } else {
            TopicRef::Name(topic.topic.to_string())
        }
    }
}

/// One partition as a client wants it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub topic: TopicRef,
    pub fetch: FetchPartition,
    /// High watermark and log start of the last answer; -1 to have it said again.
    pub told: (i64, i64),
}

#[derive(Debug)]
struct Session {
    next_epoch: i32,
    by_id: bool,
    wanted: Vec<Wanted>,
}

/// What a fetch is about, after its session was looked up.
#[derive(Debug)]
pub(crate) struct Context {
    /// 0 if there is no session.
    pub session_id: i32,
    /// Answers leave out partitions without news.
    pub incremental: bool,
    pub wanted: Vec<Wanted>,
}

/// The sessions of a broker.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: BTreeMap<i32, Session>,
    sessions_max: usize,
}

impl Sessions {
    pub fn new(sessions_max: usize) -> Self {
        Sessions {
            open: BTreeMap::new(),
            sessions_max,
        }
    }

    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// What a session holds, by topic and partition.
    pub fn wanted(&self, session_id: i32) -> &[Wanted] {
        self.open
            .get(&session_id)
            .map_or(&[], |session| &session.wanted)
    }

    /// Opens, continues or ends a session as the request says. `new_id` is used if one is opened.
    pub fn begin(
        &mut self,
        request: &FetchRequest,
        by_id: bool,
        new_id: i32,
    ) -> Result<Context, ResponseError> {
        match request.session_epoch {
            INITIAL_EPOCH | FINAL_EPOCH => Ok(self.begin_full(request, by_id, new_id)),
            epoch => self.begin_incremental(request, by_id, epoch),
        }
    }

    fn begin_full(&mut self, request: &FetchRequest, by_id: bool, new_id: i32) -> Context {
        self.open.remove(&request.session_id);
        let mut wanted = Vec::new();
        merge(&mut wanted, request, by_id);
        let opens = request.session_epoch == INITIAL_EPOCH
            && !wanted.is_empty()
            && self.open.len() < self.sessions_max;
        if opens {
            let session = Session {
                next_epoch: 1,
                by_id,
                wanted: wanted.clone(),
            };
            self.open.insert(new_id, session);
        }
        Context {
            session_id: if opens { new_id } else { 0 },
            incremental: false,
            wanted,
        }
    }

    fn begin_incremental(
        &mut self,
        request: &FetchRequest,
        by_id: bool,
        epoch: i32,
    ) -> Result<Context, ResponseError> {
        let session = self
            .open
            .get_mut(&request.session_id)
            .ok_or(FetchSessionIdNotFound)?;
        if session.next_epoch != epoch {
            return Err(InvalidFetchSessionEpoch);
        }
        if session.by_id != by_id {
            return Err(FetchSessionTopicIdError);
        }
        for forgotten in &request.forgotten_topics_data {
            let topic = if by_id {
                TopicRef::Id(forgotten.topic_id)
            } else {
                TopicRef::Name(forgotten.topic.to_string())
            };
            session.wanted.retain(|wanted| {
                wanted.topic != topic || !forgotten.partitions.contains(&wanted.fetch.partition)
            });
        }
        merge(&mut session.wanted, request, by_id);
        session.next_epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        let wanted = session.wanted.clone();
        Ok(Context {
            session_id: request.session_id,
            incremental: true,
            wanted,
        })
    }

    /// Remembers what was told, and puts partitions that had records last, so that all get their
    /// turn.
    pub fn end(&mut self, session_id: i32, told: Vec<Wanted>, had_records: &[bool]) {
        let Some(session) = self.open.get_mut(&session_id) else {
            return;
        };
        let (mut first, mut last) = (Vec::with_capacity(told.len()), Vec::new());
        for (wanted, had_records) in told.into_iter().zip(had_records) {
            if *had_records {
                last.push(wanted);
            } else {
                first.push(wanted);
            }
        }
        first.append(&mut last);
        session.wanted = first;
    }
}

fn merge(wanted: &mut Vec<Wanted>, request: &FetchRequest, by_id: bool) {
    let mut index: BTreeMap<(TopicRef, i32), usize> = if request.topics.is_empty() {
        return;
    } else {
        wanted
            .iter()
            .enumerate()
            .map(|(at, w)| ((w.topic.clone(), w.fetch.partition), at))
            .collect()
    };
    for topic in &request.topics {
        let name = TopicRef::of(topic, by_id);
        for fetch in &topic.partitions {
            let key = (name.clone(), fetch.partition);
            match index.get(&key) {
                Some(at) => wanted[*at].fetch = fetch.clone(),
                None => {
                    index.insert(key, wanted.len());
                    let (topic, fetch) = (name.clone(), fetch.clone());
                    wanted.push(Wanted {
                        topic,
                        fetch,
                        told: (-1, -1),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::TopicName;
    use kafka_protocol::messages::fetch_request::ForgottenTopic;
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn name() -> TopicName {
        TopicName(StrBytes::from_static_str("t"))
    }

    fn request(session_id: i32, epoch: i32, partitions: &[(i32, i64)]) -> FetchRequest {
        let partitions = partitions
            .iter()
            .map(|(n, at)| {
                FetchPartition::default()
                    .with_partition(*n)
                    .with_fetch_offset(*at)
            })
            .collect::<Vec<_>>();
        let topics = if partitions.is_empty() {
            Vec::new()
        } else {
            vec![
                FetchTopic::default()
                    .with_topic(name())
                    .with_partitions(partitions),
            ]
        };
        FetchRequest::default()
            .with_session_id(session_id)
            .with_session_epoch(epoch)
            .with_topics(topics)
    }

    fn wanted(context: &Context) -> Vec<(i32, i64)> {
        context
            .wanted
            .iter()
            .map(|w| (w.fetch.partition, w.fetch.fetch_offset))
            .collect()
    }

    #[test]
    fn a_session_changes_by_what_requests_name() {
        let mut sessions = Sessions::new(10);
        sessions
            .begin(&request(0, 0, &[(0, 5), (1, 6)]), false, 99)
            .unwrap();

        let updated = sessions
            .begin(&request(99, 1, &[(1, 7), (2, 0)]), false, 0)
            .unwrap();
        let forget = ForgottenTopic::default()
            .with_topic(name())
            .with_partitions(vec![0]);
        let forgetting = request(99, 2, &[]).with_forgotten_topics_data(vec![forget]);
        let forgotten = sessions.begin(&forgetting, false, 0).unwrap();

        assert_eq!(wanted(&updated), [(0, 5), (1, 7), (2, 0)]);
        assert_eq!(wanted(&forgotten), [(1, 7), (2, 0)]);
        assert!(forgotten.incremental);
    }

    #[test]
    fn wrong_ids_and_epochs_are_refused() {
        let mut sessions = Sessions::new(10);
        sessions
            .begin(&request(0, 0, &[(0, 0)]), false, 99)
            .unwrap();

        for (id, epoch, by_id, expected) in [
            (98, 1, false, FetchSessionIdNotFound),
            (99, 2, false, InvalidFetchSessionEpoch),
            (99, 1, true, FetchSessionTopicIdError),
        ] {
            let refused = sessions.begin(&request(id, epoch, &[]), by_id, 0).err();
            assert_eq!(refused, Some(expected), "session {id} epoch {epoch}");
        }
    }

    #[test]
    fn no_session_is_opened_for_the_final_epoch_nothing_wanted_or_a_full_cache() {
        let mut sessions = Sessions::new(1);
        let mut id_of = |request| sessions.begin(&request, false, 7).unwrap().session_id;

        assert_eq!(id_of(request(0, -1, &[(0, 0)])), 0);
        assert_eq!(id_of(request(0, 0, &[])), 0);
        assert_eq!(id_of(request(0, 0, &[(0, 0)])), 7);
        assert_eq!(id_of(request(0, 0, &[(0, 0)])), 0);
    }
}
