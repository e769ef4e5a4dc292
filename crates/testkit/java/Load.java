import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.StringJoiner;
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
 * With {@code --first-time} the timestamps count up from there by a millisecond per record. With
 * {@code --first-partition} the partitions below it get nothing. With {@code --transaction} so many records at a
 * time are one, and every third is first aborted and then sent again.
 */
final class Load {
    /** Of this many random bytes values are cut, so that codecs find half of each value elsewhere in the batch. */
    private static final int POOL = 1 << 20;

    private final byte[] pool = new byte[POOL];
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;
    private final int size;
    private final long rate;
    private final String firstTime;
    private final long transaction;
    private final int firstPartition;
    private final int partitions;

    private Load(Options options) {
        topic = options.text("topic");
        size = Math.max(8, (int) options.number("size"));
        rate = Long.parseLong(options.text("rate", "0"));
        firstTime = options.text("first-time", null);
        transaction = Long.parseLong(options.text("transaction", "0"));
        firstPartition = Integer.parseInt(options.text("first-partition", "0"));
        new Random(1).nextBytes(pool);

        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", options.text("bootstrap"));
        config.put("compression.type", options.text("codec", "none"));
        config.put("delivery.timeout.ms", 600_000);
        config.put("linger.ms", rate == 0 ? 20 : 5);
        config.put("batch.size", rate == 0 ? 131_072 : 16_384);
        if (transaction > 0) {
            config.put("transactional.id", topic);
        }
        var bytes = new ByteArraySerializer();
        producer = new KafkaProducer<>(config, bytes, bytes);
        partitions = producer.partitionsFor(topic).size() - firstPartition;
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "bootstrap", "topic", "rate", "size", "codec", "records",
            "first-time", "first-partition", "transaction");
        Load load = new Load(options);
        load.run(Long.parseLong(options.text("records", String.valueOf(Long.MAX_VALUE))));
        if (load.failure.get() != null) {
            load.failure.get().printStackTrace();
            System.exit(1);
        }
    }

    private void run(long records) {
        Thread stop = closedInput();
        System.out.println("producing to " + partitions + " partitions");
        if (transaction > 0) {
            producer.initTransactions();
        }
        long start = System.nanoTime();
        long sent = 0;
        long rounds = 0;
        while (sent < records && stop.isAlive() && failure.get() == null) {
            long upTo = sent + Math.max(1, transaction);
            if (transaction > 0) {
                transaction(sent, upTo, ++rounds % 3 == 0);
            } else {
                send(sent);
            }
            sent = upTo;
            if (rate > 0) {
                LockSupport.parkNanos(start + sent * 1_000_000_000L / rate - System.nanoTime());
            }
        }
        producer.close();
        StringJoiner counts = new StringJoiner(" ", "acknowledged ", "");
        for (int partition = 0; partition < firstPartition + partitions; partition++) {
            // Round robin: the first partitions have one more.
            long ahead = partition - firstPartition;
            counts.add(String.valueOf(ahead < 0 ? 0 : (sent - ahead + partitions - 1) / partitions));
        }
        System.out.println(counts);
    }

    private void transaction(long from, long upTo, boolean abortFirst) {
        if (abortFirst) {
            producer.beginTransaction();
            for (long number = from; number < upTo; number++) {
                send(number);
            }
            // What isn't sent when it aborts never reaches the log.
            producer.flush();
            producer.abortTransaction();
        }
        producer.beginTransaction();
        for (long number = from; number < upTo; number++) {
            send(number);
        }
        producer.commitTransaction();
    }

    /** The record with this number over all partitions. */
    private void send(long number) {
        int partition = firstPartition + (int) (number % partitions);
        Long time = firstTime == null ? null : Long.valueOf(Long.parseLong(firstTime) + number);
        byte[] value = value(number / partitions);
        producer.send(new ProducerRecord<>(topic, partition, time, null, value), (metadata, error) -> {
            if (error != null) {
                failure.compareAndSet(null, error);
            }
        });
    }

    /** Half of it from the pool, half of it a pattern: compresses about two to one. */
    private byte[] value(long number) {
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
