import java.io.*;
import java.lang.reflect.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.mirror.*;
import org.apache.kafka.connect.runtime.*;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;

/**
 * Writes what MirrorMaker 2 derives from each derive/*.properties: the flows that get a worker, and for
 * each the settings of the worker, the source connector, the clients in it and the producer of records.
 *
 * Usage: java -cp "LIBS/*" DeriveGolden.java DIRECTORY, with Kafka's jars in LIBS; writes DIRECTORY/*.derived.
 *
 * Left out is what depends on no key: serializers, and the client ids and group switches that the code
 * sets by itself.
 */
public class DeriveGolden {
    static final Set<String> SET_BY_CODE = Set.of("client.id", "key.serializer", "value.serializer",
        "key.deserializer", "value.deserializer", "enable.auto.commit", "key.converter", "value.converter",
        "header.converter", "acks", "max.block.ms", "enable.idempotence", "delivery.timeout.ms",
        "max.in.flight.requests.per.connection");

    public static void main(String[] args) throws Exception {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Paths.get(args[0]), "*.properties")) {
            for (Path file : files) {
                Path out = Paths.get(file.toString().replace(".properties", ".derived"));
                Files.writeString(out, derive(file));
            }
        }
    }

    static String derive(Path file) throws Exception {
        Properties properties = new Properties();
        try (InputStream in = Files.newInputStream(file)) {
            properties.load(in);
        }
        Map<String, String> map = new HashMap<>();
        properties.forEach((key, value) -> map.put((String) key, (String) value));
        MirrorMakerConfig config = new MirrorMakerConfig(map);
        StringBuilder out = new StringBuilder();
        List<SourceAndTarget> pairs = new ArrayList<>(config.clusterPairs());
        pairs.sort(Comparator.comparing(SourceAndTarget::toString));
        for (SourceAndTarget pair : pairs) {
            Map<String, String> worker = config.workerConfig(pair);
            Map<String, String> connector = config.connectorBaseConfig(pair, MirrorSourceConnector.class);
            section(out, pair + " worker", worker);
            section(out, pair + " connector", connector);
            MirrorSourceConfig source = new MirrorSourceConfig(connector);
            for (String side : new String[] {"source", "target"}) {
                for (String kind : new String[] {"Producer", "Consumer", "Admin"}) {
                    Method method = MirrorConnectorConfig.class.getDeclaredMethod(side + kind + "Config", String.class);
                    method.setAccessible(true);
                    section(out, pair + " " + side + " " + kind.toLowerCase(), (Map<?, ?>) method.invoke(source, "role"));
                }
            }
            section(out, pair + " writer", writer(worker, connector));
        }
        return out.toString();
    }

    static Map<?, ?> writer(Map<String, String> worker, Map<String, String> connector) throws Exception {
        Method method = Worker.class.getDeclaredMethod("baseProducerConfigs", String.class, String.class, WorkerConfig.class,
            ConnectorConfig.class, Class.class, ConnectorClientConfigOverridePolicy.class, String.class);
        method.setAccessible(true);
        ConnectorConfig config = new ConnectorConfig(new org.apache.kafka.connect.runtime.isolation.Plugins(Map.of()), connector);
        return new TreeMap<>((Map<String, Object>) method.invoke(null, "MirrorSourceConnector", "id", new DistributedConfig(worker),
            config, MirrorSourceConnector.class, new AllConnectorClientConfigOverridePolicy(), null));
    }

    static void section(StringBuilder out, String name, Map<?, ?> settings) {
        out.append("[").append(name).append("]\n");
        boolean client = !name.endsWith("worker") && !name.endsWith("connector");
        for (Map.Entry<?, ?> entry : new TreeMap<Object, Object>(settings).entrySet()) {
            String key = (String) entry.getKey();
            boolean converter = key.endsWith(".converter");
            if (!(client && SET_BY_CODE.contains(key)) && !converter && !key.startsWith("metrics.context.")) {
                out.append(key).append("=").append(entry.getValue()).append("\n");
            }
        }
    }
}
