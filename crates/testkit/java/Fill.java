import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills many topics, each partition with as many records, as fast as it goes.
 *
 * <p>{@code --batch} bounds the bytes of a batch: 0 makes a batch of every record. Values are random, so that no
 * codec and no file system makes them smaller.
 */
final class Fill {
    /** Records that a partition gets in a row, so that batches fill however many partitions there are. */
    private static final long IN_A_ROW = 100;
    /** Of this many random bytes values are cut. */
    private static final int POOL = 1 << 20;

    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final byte[] pool = new byte[POOL];
    private final KafkaProducer<byte[], byte[]> producer;
    private final int size;

    private Fill(Options options) {
        new Random(1).nextBytes(pool);
        size = (int) options.number("size");
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", options.text("bootstrap"));
        config.put("batch.size", (int) options.number("batch"));
        config.put("linger.ms", options.number("batch") == 0 ? 0 : 20);
        config.put("buffer.memory", 128L << 20);
        config.put("max.request.size", 8 << 20);
        config.put("delivery.timeout.ms", 600_000);
        var bytes = new ByteArraySerializer();
        producer = new KafkaProducer<>(config, bytes, bytes);
    }

    public static void main(String[] arguments) {
        Options options = new Options(arguments, "bootstrap", "topics", "partitions", "records", "size", "batch");
        Fill fill = new Fill(options);
        fill.run(options.list("topics"), (int) options.number("partitions"), options.number("records"));
        if (fill.failure.get() != null) {
            fill.failure.get().printStackTrace();
            System.exit(1);
        }
    }

    private void run(List<String> topics, int partitions, long records) {
        for (long first = 0; first < records && failure.get() == null; first += IN_A_ROW) {
            for (String topic : topics) {
                for (int partition = 0; partition < partitions; partition++) {
                    send(topic, partition, first, Math.min(records, first + IN_A_ROW));
                }
            }
        }
        producer.close();
    }

    private void send(String topic, int partition, long from, long upTo) {
        for (long number = from; number < upTo; number++) {
            byte[] value = new byte[size];
            System.arraycopy(pool, (int) ((number * 7919) % (POOL - size)), value, 0, size);
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                if (error != null) {
                    failure.compareAndSet(null, error);
                }
            });
        }
    }
}
