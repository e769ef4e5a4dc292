import java.lang.reflect.*;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Writes the keys that MirrorMaker 2, Connect's worker and Kafka's clients define: where, name, type, default.
 *
 * Usage: java -cp "LIBS/*" KeysGolden.java > keys.tsv, with Kafka's jars in LIBS. "-" is a key without default.
 */
public class KeysGolden {
    public static void main(String[] args) throws Exception {
        String mirror = "org.apache.kafka.connect.mirror.";
        String clients = "org.apache.kafka.clients.";
        write("driver", (ConfigDef) call(mirror + "MirrorMakerConfig", "config"));
        write("connector", (ConfigDef) get(mirror + "MirrorSourceConfig", "CONNECTOR_CONFIG_DEF"));
        write("connector", (ConfigDef) get(mirror + "MirrorCheckpointConfig", "CONNECTOR_CONFIG_DEF"));
        write("connector", (ConfigDef) get(mirror + "MirrorHeartbeatConfig", "CONNECTOR_CONFIG_DEF"));
        write("security", (ConfigDef) get(mirror + "MirrorClientConfig", "CLIENT_CONFIG_DEF"));
        write("producer", (ConfigDef) call(clients + "producer.ProducerConfig", "configDef"));
        write("consumer", (ConfigDef) call(clients + "consumer.ConsumerConfig", "configDef"));
        write("admin", (ConfigDef) call(clients + "admin.AdminClientConfig", "configDef"));
        String distributed = "org.apache.kafka.connect.runtime.distributed.";
        Class<?> crypto = Class.forName(distributed + "Crypto");
        Method worker = Class.forName(distributed + "DistributedConfig").getDeclaredMethod("config", crypto);
        worker.setAccessible(true);
        Field system = crypto.getField("SYSTEM");
        system.setAccessible(true);
        write("worker", (ConfigDef) worker.invoke(null, system.get(null)));
    }

    static Object call(String type, String method) throws Exception {
        Method found = Class.forName(type).getDeclaredMethod(method);
        found.setAccessible(true);
        return found.invoke(null);
    }

    static Object get(String type, String field) throws Exception {
        Field found = Class.forName(type).getDeclaredField(field);
        found.setAccessible(true);
        return found.get(null);
    }

    static void write(String place, ConfigDef def) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(def.configKeys()).values()) {
            Object value = key.hasDefault() ? key.defaultValue : null;
            String text = value == null ? "-" : ConfigDef.convertToString(value, key.type);
            System.out.println(String.join("\t", place, key.name, key.type.toString(), text));
        }
    }
}
