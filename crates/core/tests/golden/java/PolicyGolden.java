import java.util.*;
import org.apache.kafka.connect.mirror.*;

/**
 * Writes what MirrorMaker's replication policies say about topics.
 *
 * Usage: java -cp "LIBS/*" PolicyGolden.java > policies.tsv, with Kafka's jars in LIBS.
 *
 * A row: class, separator ("-" unset), internal separator switch ("-" unset), topic, then the remote topic
 * of cluster "A", source, upstream topic, original topic, and 0 or 1 for heartbeats, checkpoints,
 * MirrorMaker's internal and internal topics. "null" is Java's null; "" is printed as "''".
 */
public class PolicyGolden {
    static final String[] TOPICS = {
        "t", "A.t", "B.A.t", "A.B.C.t", "a.", "a..", ".", "..", ".a", "..a", "a..b", "a...b", ".a.", "", "orders.v1", "us.east.t",
        "A_t", "B_A_t", "a_", "_a", "__a", "A__t", "A--t", "A-t", "A---t", "A.B_t", "At", "ab",
        "heartbeats", "A.heartbeats", "B.A.heartbeats", "my-heartbeats", "heartbeats.A", "A_heartbeats", "heartbeat", "A.my-heartbeats", "xheartbeats", "A--heartbeats",
        "A.checkpoints.internal", "A_checkpoints_internal", "checkpoints.internal", ".checkpoints.internal", "A.checkpoints_internal", "A--checkpoints--internal", "xcheckpoints.internal", "A.B.checkpoints.internal",
        "mm2-offset-syncs.A.internal", "mm2-offset-syncs_A_internal", "mm2-offset-syncs--A--internal", "mm2-configs.A.internal", "mm2.internal", "mm2internal", "mm2_internal", "mm3.internal", "mm2-x-internal",
        "foo.internal", "foo-internal", "foo_internal", "internal", ".internal", "__consumer_offsets", "__transaction_state", "_schemas", ".hidden"
    };

    public static void main(String[] args) {
        for (String kind : new String[] {"Default", "Identity"}) {
            for (String separator : new String[] {"-", ".", "_", "--"}) {
                for (String internal : new String[] {"-", "true", "false"}) {
                    DefaultReplicationPolicy policy = kind.equals("Default") ? new DefaultReplicationPolicy() : new IdentityReplicationPolicy();
                    Map<String, String> props = new HashMap<>();
                    props.put("source.cluster.alias", "A");
                    if (!separator.equals("-")) props.put("replication.policy.separator", separator);
                    if (!internal.equals("-")) props.put("replication.policy.internal.topic.separator.enabled", internal);
                    policy.configure(props);
                    System.out.println(String.join("\t", "names", kind, separator, internal, policy.offsetSyncsTopic("A"), policy.checkpointsTopic("A"), policy.heartbeatsTopic()));
                    for (String topic : TOPICS) {
                        System.out.println(String.join("\t", kind, separator, internal, text(topic), text(policy.formatRemoteTopic("A", topic)), text(policy.topicSource(topic)),
                            text(policy.upstreamTopic(topic)), text(policy.originalTopic(topic)), bit(policy.isHeartbeatsTopic(topic)), bit(policy.isCheckpointsTopic(topic)),
                            bit(policy.isMM2InternalTopic(topic)), bit(policy.isInternalTopic(topic))));
                    }
                }
            }
        }
    }

    static String text(String text) {
        return text == null ? "null" : text.isEmpty() ? "''" : text;
    }

    static String bit(boolean bit) {
        return bit ? "1" : "0";
    }
}
