import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints each committed record of a topic, up to where it ends now: {@code record}, partition, offset, key and value;
 * both in hex, {@code null} where there is none.
 */
final class Dump {
    public static void main(String[] arguments) {
        Options options = new Options(arguments, "bootstrap", "topic");
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", options.text("bootstrap"));
        config.put("isolation.level", "read_committed");
        config.put("auto.offset.reset", "none");
        config.put("allow.auto.create.topics", false);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            List<TopicPartition> partitions = consumer.partitionsFor(options.text("topic")).stream()
                .map(info -> new TopicPartition(info.topic(), info.partition()))
                .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                consumer.poll(Duration.ofMillis(100)).forEach(Dump::print);
            }
        }
    }

    private static void print(ConsumerRecord<byte[], byte[]> record) {
        System.out.println("record " + record.partition() + " " + record.offset() + " " + hex(record.key()) + " "
            + hex(record.value()));
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : "'" + HexFormat.of().formatHex(bytes) + "'";
    }
}
