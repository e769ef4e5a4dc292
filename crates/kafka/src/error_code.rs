//! Every error code of the protocol (`org.apache.kafka.common.protocol.Errors`, Kafka 4.3) and its
//! class.

use std::fmt;

use crate::error::Class;

/// An error code as it travels. Codes of newer brokers are kept as they came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

macro_rules! codes {
    ($($code:literal $name:ident $class:ident $text:literal;)*) => {
        impl ErrorCode {
            $(
                #[doc = concat!("Code ", $code, ": ", $text, ".")]
                pub const $name: ErrorCode = ErrorCode($code);
            )*

            /// All codes this client knows, in ascending order.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The name Java gives the code, `UNKNOWN` for codes of newer brokers.
            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => stringify!($name),)* _ => "UNKNOWN" }
            }

            /// The code in words.
            pub fn message(self) -> &'static str {
                match self { $(ErrorCode::$name => $text,)* _ => "a code unknown to this client" }
            }

            /// What the protocol asks a client to do about it. [`ErrorCode::NONE`] has no class of
            /// its own and answers [`Class::Unexpected`], because asking is a mistake.
            pub fn class(self) -> Class {
                match self { $(ErrorCode::$name => Class::$class,)* _ => Class::Unexpected }
            }
        }
    };
}

codes! {
    -1 UNKNOWN_SERVER_ERROR Unexpected "the broker failed in a way it has no code for";
    0 NONE Unexpected "no error";
    1 OFFSET_OUT_OF_RANGE Position "the offset is outside the log";
    2 CORRUPT_MESSAGE Retriable "a checksum or size does not match";
    3 UNKNOWN_TOPIC_OR_PARTITION RefreshMetadata "the broker does not host the partition";
    4 INVALID_FETCH_SIZE Refused "the fetch size is invalid";
    5 LEADER_NOT_AVAILABLE RefreshMetadata "no leader is elected";
    6 NOT_LEADER_OR_FOLLOWER RefreshMetadata "the broker is not the leader or a replica";
    7 REQUEST_TIMED_OUT Retriable "the broker could not finish in the time it was given";
    8 BROKER_NOT_AVAILABLE Unexpected "the broker is not available";
    9 REPLICA_NOT_AVAILABLE RefreshMetadata "the replica is not available";
    10 MESSAGE_TOO_LARGE Refused "the batch is larger than max.message.bytes";
    11 STALE_CONTROLLER_EPOCH Unexpected "the controller moved";
    12 OFFSET_METADATA_TOO_LARGE Refused "the metadata of the committed offset is too long";
    13 NETWORK_EXCEPTION RefreshMetadata "the broker lost its connection to another";
    14 COORDINATOR_LOAD_IN_PROGRESS Retriable "the coordinator is loading its state";
    15 COORDINATOR_NOT_AVAILABLE RefreshCoordinator "the coordinator is not available";
    16 NOT_COORDINATOR RefreshCoordinator "the broker is not the coordinator";
    17 INVALID_TOPIC_EXCEPTION Refused "the topic's name is not allowed, or writing to it is not";
    18 RECORD_LIST_TOO_LARGE Refused "the batch is larger than segment.bytes";
    19 NOT_ENOUGH_REPLICAS Retriable "fewer replicas are in sync than min.insync.replicas";
    20 NOT_ENOUGH_REPLICAS_AFTER_APPEND Retriable "appended, but to too few in-sync replicas";
    21 INVALID_REQUIRED_ACKS Refused "acks has an invalid value";
    22 ILLEGAL_GENERATION Fenced "the group has moved on to another generation";
    23 INCONSISTENT_GROUP_PROTOCOL Refused "the member's protocols do not fit the group's";
    24 INVALID_GROUP_ID Refused "the group id is invalid";
    25 UNKNOWN_MEMBER_ID Fenced "the coordinator does not know the member";
    26 INVALID_SESSION_TIMEOUT Refused "the session timeout is outside the broker's bounds";
    27 REBALANCE_IN_PROGRESS Retriable "the group is rebalancing";
    28 INVALID_COMMIT_OFFSET_SIZE Refused "the commit is too large";
    29 TOPIC_AUTHORIZATION_FAILED Authorization "not authorized for the topic";
    30 GROUP_AUTHORIZATION_FAILED Authorization "not authorized for the group";
    31 CLUSTER_AUTHORIZATION_FAILED Authorization "not authorized for the cluster";
    32 INVALID_TIMESTAMP Refused "a timestamp is outside the topic's bounds";
    33 UNSUPPORTED_SASL_MECHANISM Authentication "the SASL mechanism is not enabled";
    34 ILLEGAL_SASL_STATE Authentication "the request does not fit the state of the authentication";
    35 UNSUPPORTED_VERSION Unsupported "the broker does not know the version of the API";
    36 TOPIC_ALREADY_EXISTS Refused "the topic exists";
    37 INVALID_PARTITIONS Refused "the number of partitions is invalid";
    38 INVALID_REPLICATION_FACTOR Refused "the replication factor is not possible";
    39 INVALID_REPLICA_ASSIGNMENT Refused "the replica assignment is invalid";
    40 INVALID_CONFIG Refused "a configuration is invalid";
    41 NOT_CONTROLLER RefreshMetadata "the broker is not the controller";
    42 INVALID_REQUEST Refused "the broker finds the request malformed";
    43 UNSUPPORTED_FOR_MESSAGE_FORMAT Unsupported "the topic's message format is too old";
    44 POLICY_VIOLATION Refused "the request violates a policy of the cluster";
    45 OUT_OF_ORDER_SEQUENCE_NUMBER Sequence "the sequence number does not continue the log's";
    46 DUPLICATE_SEQUENCE_NUMBER Sequence "the sequence number was used before";
    47 INVALID_PRODUCER_EPOCH Fenced "the producer epoch is older than the log's";
    48 INVALID_TXN_STATE Fenced "the transaction is in another state";
    49 INVALID_PRODUCER_ID_MAPPING Fenced "the producer id does not belong to the transactional id";
    50 INVALID_TRANSACTION_TIMEOUT Refused "the transaction timeout is above the broker's maximum";
    51 CONCURRENT_TRANSACTIONS Retriable "another step of the same transaction is under way";
    52 TRANSACTION_COORDINATOR_FENCED Fenced "a newer coordinator wrote markers for the producer";
    53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED Authorization "not authorized for the id";
    54 SECURITY_DISABLED Unsupported "the cluster has no authorizer";
    55 OPERATION_NOT_ATTEMPTED Retriable "the broker gave up on the request before this part";
    56 KAFKA_STORAGE_ERROR RefreshMetadata "the broker's disk failed";
    57 LOG_DIR_NOT_FOUND Refused "the log directory is not configured";
    58 SASL_AUTHENTICATION_FAILED Authentication "the credentials were refused";
    59 UNKNOWN_PRODUCER_ID Sequence "the log holds nothing of the producer";
    60 REASSIGNMENT_IN_PROGRESS Retriable "partitions are being reassigned";
    61 DELEGATION_TOKEN_AUTH_DISABLED Authentication "delegation tokens are disabled";
    62 DELEGATION_TOKEN_NOT_FOUND Authentication "the delegation token is unknown";
    63 DELEGATION_TOKEN_OWNER_MISMATCH Authorization "the token has another owner";
    64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED Authorization "not on this connection";
    65 DELEGATION_TOKEN_AUTHORIZATION_FAILED Authorization "not authorized";
    66 DELEGATION_TOKEN_EXPIRED Authentication "the delegation token has expired";
    67 INVALID_PRINCIPAL_TYPE Refused "the type of principal is not supported";
    68 NON_EMPTY_GROUP Refused "the group has members";
    69 GROUP_ID_NOT_FOUND Refused "the group does not exist";
    70 FETCH_SESSION_ID_NOT_FOUND ResetFetchSession "the broker forgot the fetch session";
    71 INVALID_FETCH_SESSION_EPOCH ResetFetchSession "the fetch session is at another epoch";
    72 LISTENER_NOT_FOUND RefreshMetadata "the leader lacks the listener the request came through";
    73 TOPIC_DELETION_DISABLED Refused "topic deletion is disabled";
    74 FENCED_LEADER_EPOCH RefreshMetadata "the leader epoch is old";
    75 UNKNOWN_LEADER_EPOCH RefreshMetadata "the leader epoch is newer than the broker's";
    76 UNSUPPORTED_COMPRESSION_TYPE Unsupported "the codec needs a newer version of the API";
    77 STALE_BROKER_EPOCH Unexpected "the broker's epoch changed";
    78 OFFSET_NOT_AVAILABLE Retriable "a new leader does not know the high watermark yet";
    79 MEMBER_ID_REQUIRED Retriable "the member must join with the id it was given";
    80 PREFERRED_LEADER_NOT_AVAILABLE RefreshMetadata "the preferred leader is not available";
    81 GROUP_MAX_SIZE_REACHED Refused "the group is full";
    82 FENCED_INSTANCE_ID Fenced "another member took over the group instance id";
    83 ELIGIBLE_LEADERS_NOT_AVAILABLE RefreshMetadata "no replica may become leader";
    84 ELECTION_NOT_NEEDED RefreshMetadata "the partition has the leader it should have";
    85 NO_REASSIGNMENT_IN_PROGRESS Refused "no reassignment is under way";
    86 GROUP_SUBSCRIBED_TO_TOPIC Refused "the group is subscribed to the topic";
    87 INVALID_RECORD Refused "the broker's checks refused the batch";
    88 UNSTABLE_OFFSET_COMMIT Retriable "an open transaction holds offsets of the group";
    89 THROTTLING_QUOTA_EXCEEDED Retriable "a quota is exceeded";
    90 PRODUCER_FENCED Fenced "a newer producer uses the transactional id";
    91 RESOURCE_NOT_FOUND Refused "the resource does not exist";
    92 DUPLICATE_RESOURCE Refused "the resource is named twice";
    93 UNACCEPTABLE_CREDENTIAL Refused "the credential is not acceptable";
    94 INCONSISTENT_VOTER_SET Unexpected "the sender is not one of the expected voters";
    95 INVALID_UPDATE_VERSION Unexpected "the update version is invalid";
    96 FEATURE_UPDATE_FAILED Unexpected "features could not be updated";
    97 PRINCIPAL_DESERIALIZATION_FAILURE Unexpected "a forwarded principal could not be read";
    98 SNAPSHOT_NOT_FOUND Unexpected "the snapshot does not exist";
    99 POSITION_OUT_OF_RANGE Unexpected "the position is outside the snapshot";
    100 UNKNOWN_TOPIC_ID RefreshMetadata "the broker does not host the topic id";
    101 DUPLICATE_BROKER_REGISTRATION Unexpected "the broker id is in use";
    102 BROKER_ID_NOT_REGISTERED Unexpected "the broker id is not registered";
    103 INCONSISTENT_TOPIC_ID RefreshMetadata "the log belongs to another topic id";
    104 INCONSISTENT_CLUSTER_ID Refused "the request names another cluster";
    105 TRANSACTIONAL_ID_NOT_FOUND Refused "the transactional id is unknown";
    106 FETCH_SESSION_TOPIC_ID_ERROR ResetFetchSession "topics with and without ids are mixed";
    107 INELIGIBLE_REPLICA Unexpected "a replica may not join the in-sync set";
    108 NEW_LEADER_ELECTED Unexpected "the partition changed its leader meanwhile";
    109 OFFSET_MOVED_TO_TIERED_STORAGE Position "the offset is in tiered storage";
    110 FENCED_MEMBER_EPOCH Fenced "the coordinator fenced the member";
    111 UNRELEASED_INSTANCE_ID Retriable "the group instance id is still in use";
    112 UNSUPPORTED_ASSIGNOR Unsupported "the assignor is not supported";
    113 STALE_MEMBER_EPOCH Fenced "the member epoch is old";
    114 MISMATCHED_ENDPOINT_TYPE Unsupported "the endpoint is of another type";
    115 UNSUPPORTED_ENDPOINT_TYPE Unsupported "the endpoint type is not supported";
    116 UNKNOWN_CONTROLLER_ID Unexpected "the controller id is unknown";
    117 UNKNOWN_SUBSCRIPTION_ID Unexpected "the telemetry subscription is unknown";
    118 TELEMETRY_TOO_LARGE Refused "the telemetry is too large";
    119 INVALID_REGISTRATION Unexpected "the broker's registration is invalid";
    120 TRANSACTION_ABORTABLE Fenced "the transaction can only be aborted";
    121 INVALID_RECORD_STATE Refused "the record cannot be acknowledged in its state";
    122 SHARE_SESSION_NOT_FOUND Retriable "the share session is unknown";
    123 INVALID_SHARE_SESSION_EPOCH Retriable "the share session is at another epoch";
    124 FENCED_STATE_EPOCH Fenced "the share group's state is at another epoch";
    125 INVALID_VOTER_KEY Unexpected "the voter's key does not match";
    126 DUPLICATE_VOTER Unexpected "the voter exists";
    127 VOTER_NOT_FOUND Unexpected "the voter does not exist";
    128 INVALID_REGULAR_EXPRESSION Refused "the regular expression is invalid";
    129 REBOOTSTRAP_REQUIRED RefreshMetadata "start again from the bootstrap addresses";
    130 STREAMS_INVALID_TOPOLOGY Refused "the streams topology is invalid";
    131 STREAMS_INVALID_TOPOLOGY_EPOCH Refused "the streams topology epoch is invalid";
    132 STREAMS_TOPOLOGY_FENCED Fenced "the streams topology epoch is old";
    133 SHARE_SESSION_LIMIT_REACHED Retriable "there are too many share sessions";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), {}", self.name(), self.0, self.message())
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::error::ResponseError;

    use super::*;

    /// The codec's table is generated from Java's `Errors`; names differ in their spelling only.
    #[test]
    fn names_and_retriability_agree_with_the_codec() {
        for &code in ErrorCode::ALL.iter().filter(|code| code.0 > 0) {
            let theirs = ResponseError::try_from_code(code.0).expect("not zero");

            let name = code.name().replace('_', "");
            assert_eq!(name, theirs.to_string().to_uppercase(), "{}", code.0);
            let ours = matches!(
                code.class(),
                Class::Retriable
                    | Class::RefreshMetadata
                    | Class::RefreshCoordinator
                    | Class::ResetFetchSession
            );
            if theirs.is_retriable() {
                assert!(ours, "{code} is retriable in Java");
            }
        }
    }

    #[test]
    fn a_code_of_a_newer_broker_is_kept() {
        let code = ErrorCode(9999);

        assert_eq!((code.name(), code.class()), ("UNKNOWN", Class::Unexpected));
    }
}
