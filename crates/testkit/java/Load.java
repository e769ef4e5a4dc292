import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.StringJoiner;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A steady idempotent producer of numbered records, round robin over the partitions of one topic.
 *
 * <p>The value starts with the number of the record in its partition, from 0, as eight bytes. Ends when its
 * input is closed or {@code --records} are sent, and then prints what was acknowledged per partition.
 * With {@code --first-time} the timestamps count up from there by a millisecond per record.
 */
final class Load {
    /** Of this many random bytes values are cut, so that codecs find half of each value elsewhere in the batch. */
    private static final int POOL = 1 << 20;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "bootstrap", "topic", "rate", "size", "codec", "records",
            "first-time");
        String topic = options.text("topic");
        int size = Math.max(8, (int) options.number("size"));
        long rate = Long.parseLong(options.text("rate", "0"));
        String firstTime = options.text("first-time", null);
        long records = Long.parseLong(options.text("records", String.valueOf(Long.MAX_VALUE)));

        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", options.text("bootstrap"));
        config.put("compression.type", options.text("codec", "none"));
        config.put("delivery.timeout.ms", 600_000);
        config.put("linger.ms", rate == 0 ? 20 : 5);
        config.put("batch.size", rate == 0 ? 131_072 : 16_384);
        var bytes = new ByteArraySerializer();
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (var producer = new KafkaProducer<>(config, bytes, bytes)) {
            int partitions = producer.partitionsFor(topic).size();
            AtomicLongArray acknowledged = new AtomicLongArray(partitions);
            long sent = 0;
            byte[] pool = new byte[POOL];
            new Random(1).nextBytes(pool);
            Thread stop = closedInput();
            System.out.println("producing to " + partitions + " partitions");
            long start = System.nanoTime();
            while (sent < records && stop.isAlive() && failure.get() == null) {
                int partition = (int) (sent % partitions);
                byte[] value = value(pool, sent / partitions, size);
                Long time = firstTime == null ? null : Long.valueOf(Long.parseLong(firstTime) + sent);
                producer.send(new ProducerRecord<>(topic, partition, time, null, value), (metadata, error) -> {
                    if (error == null) {
                        acknowledged.incrementAndGet(partition);
                    } else {
                        failure.compareAndSet(null, error);
                    }
                });
                sent++;
                if (rate > 0) {
                    LockSupport.parkNanos(start + sent * 1_000_000_000L / rate - System.nanoTime());
                }
            }
            producer.flush();
            StringJoiner counts = new StringJoiner(" ", "acknowledged ", "");
            for (int partition = 0; partition < partitions; partition++) {
                counts.add(String.valueOf(acknowledged.get(partition)));
            }
            System.out.println(counts);
        }
        if (failure.get() != null) {
            failure.get().printStackTrace();
            System.exit(1);
        }
    }

    /** Half of it from the pool, half of it a pattern: compresses about two to one. */
    private static byte[] value(byte[] pool, long number, int size) {
        byte[] value = new byte[size];
        ByteBuffer.wrap(value).putLong(number);
        int random = (size - 8) / 2;
        int from = (int) ((number * 7919) % (POOL - size));
        System.arraycopy(pool, from, value, 8, random);
        return value;
    }

    /** A thread that lives until the input ends. */
    private static Thread closedInput() {
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only the end counts.
                }
            } catch (java.io.IOException ended) {
                // As good as closed.
            }
        });
        reader.setDaemon(true);
        reader.start();
        return reader;
    }
}
