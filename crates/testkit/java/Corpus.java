import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces every kind of record and log that a mirror must carry over unchanged, to topics named
 * {@code <prefix><kind>}. Prints {@code topic <name>} for each that is to be compared record by record, and
 * {@code compacted <name>} for the one whose records the cleaner removes. {@code --round 0} makes the topics, the
 * rounds after it add to them.
 */
final class Corpus {
    private static final long NOW = 1_700_000_000_000L;
    private static final String MIB_4 = String.valueOf(4 << 20);

    private final String bootstrap;
    private final String prefix;
    private final int size;
    private final long round;
    private final Random random = new Random(42);
    private final List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
    private final AtomicReference<Exception> refused = new AtomicReference<>();

    private Corpus(Options options) {
        bootstrap = options.text("bootstrap");
        prefix = options.text("prefix", "");
        size = (int) options.number("size");
        round = options.number("round");
    }

    public static void main(String[] arguments) throws Exception {
        Corpus corpus = new Corpus(new Options(arguments, "bootstrap", "prefix", "size", "round"));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", corpus.bootstrap))) {
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                corpus.shapes(corpus.create(admin, "codec-" + codec, 3, Map.of()), 3, codec);
            }
            corpus.shapes(corpus.create(admin, "many-partitions", 30, Map.of()), 30, "lz4");
            corpus.shapes(
                corpus.create(admin, "append-time", 2, Map.of("message.timestamp.type", "LogAppendTime")), 2, "zstd");
            corpus.shapes(
                corpus.create(admin, "codec-of-topic", 2, Map.of("compression.type", "gzip")), 2, "lz4");
            corpus.create(admin, "empty", 2, Map.of());
            corpus.big(corpus.create(admin, "big", 2, Map.of("max.message.bytes", MIB_4)));
            corpus.nearlyTooBig(corpus.create(admin, "nearly-too-big", 1, Map.of()));
            String transactions = corpus.create(admin, "transactions", 3, Map.of());
            corpus.transactions(transactions);
            corpus.transactions(corpus.create(admin, "marker-last", 3, Map.of()));
            // Something after the last marker, as a log in use has; the other topic ends with it.
            corpus.plain(transactions);
            corpus.compacted(admin);
        } finally {
            corpus.producers.forEach(KafkaProducer::close);
        }
        if (corpus.refused.get() != null) {
            throw corpus.refused.get();
        }
    }

    private String create(Admin admin, String kind, int partitions, Map<String, String> configs)
        throws ExecutionException, InterruptedException {
        String topic = prefix + kind;
        Map<String, String> all = new HashMap<>(configs);
        // Records here are years old.
        all.putIfAbsent("retention.ms", "-1");
        if (round == 0) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(all))).all().get();
            waitForLeaders(admin, topic, partitions);
        }
        System.out.println((configs.containsKey("cleanup.policy") ? "compacted " : "topic ") + topic);
        return topic;
    }

    /** Waits until every partition has a leader that knows it; until then idempotent producers stumble. */
    private static void waitForLeaders(Admin admin, String topic, int partitions) throws InterruptedException {
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (int partition = 0; partition < partitions; partition++) {
            ends.put(new TopicPartition(topic, partition), OffsetSpec.latest());
        }
        for (int tries = 0; ; tries++) {
            try {
                admin.listOffsets(ends).all().get();
                return;
            } catch (ExecutionException notYet) {
                if (tries == 100) {
                    throw new IllegalStateException(topic + " has no leaders", notYet);
                }
                Thread.sleep(100);
            }
        }
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", bootstrap);
        config.put("compression.type", codec);
        config.putIfAbsent("linger.ms", 20);
        config.put("max.request.size", 8 << 20);
        var bytes = new ByteArraySerializer();
        var producer = new KafkaProducer<>(config, bytes, bytes);
        producers.add(producer);
        return producer;
    }

    /** Every shape of key, value, headers and timestamp, in batches of all sizes. */
    private void shapes(String topic, int partitions, String codec) throws ExecutionException, InterruptedException {
        var producer = producer(codec, Map.of());
        for (int i = 0; i < size; i++) {
            for (int partition = 0; partition < partitions; partition++) {
                producer.send(record(topic, partition, i), this::check);
            }
            if (random.nextInt(50) == 0) {
                producer.flush();
            }
        }
        producer.flush();
    }

    private ProducerRecord<byte[], byte[]> record(String topic, int partition, int i) {
        byte[] key = switch (i % 5) {
            case 0 -> null;
            case 1 -> new byte[0];
            case 2 -> new byte[] {(byte) 0xff, 0, (byte) 0x80};
            default -> ("key-" + i).getBytes();
        };
        byte[] value = switch (i % 7) {
            case 0 -> null;
            case 1 -> new byte[0];
            case 2 -> noise(1);
            case 3 -> noise(2000);
            case 4 -> ("the same text again and again, ".repeat(20) + i).getBytes();
            default -> ("value-" + i).getBytes();
        };
        return new ProducerRecord<>(topic, partition, timestamp(i), key, value, headers(i));
    }

    private static long timestamp(int i) {
        return switch (i % 6) {
            case 0 -> 0L;
            case 1 -> 946_684_800_000L;
            case 2, 3 -> NOW;
            // Backwards, across batches too.
            case 4 -> NOW - i * 1000L;
            default -> NOW + i;
        };
    }

    private List<Header> headers(int i) {
        List<Header> headers = new ArrayList<>();
        switch (i % 6) {
            case 1 -> headers.add(new RecordHeader("name", "value".getBytes()));
            case 2 -> {
                headers.add(new RecordHeader("same", new byte[] {1}));
                headers.add(new RecordHeader("other", null));
                headers.add(new RecordHeader("same", new byte[] {2}));
                headers.add(new RecordHeader("same", new byte[] {1}));
            }
            case 3 -> headers.add(new RecordHeader("", new byte[0]));
            case 4 -> headers.add(new RecordHeader("binär-☃", noise(300)));
            case 5 -> {
                for (int n = 0; n < 60; n++) {
                    headers.add(new RecordHeader("header-" + (n % 7), new byte[n % 3]));
                }
            }
            default -> { }
        }
        return headers;
    }

    /** Records of up to 3 MiB, which topics may allow and clients' defaults don't. */
    private void big(String topic) throws ExecutionException, InterruptedException {
        for (String codec : List.of("none", "zstd")) {
            var producer = producer(codec, Map.of());
            for (int bytes : new int[] {1, 900_000, 1_048_576, 2_000_000, 3 << 20, 10}) {
                producer.send(new ProducerRecord<>(topic, 0, NOW, "big".getBytes(), noise(bytes))).get();
                producer.send(new ProducerRecord<>(topic, 1, NOW, null, new byte[bytes])).get();
            }
        }
    }

    /** Up to the last byte that a topic with default settings takes: 1048588 with the batch around it. */
    private void nearlyTooBig(String topic) throws ExecutionException, InterruptedException {
        var producer = producer("none", Map.of());
        for (int bytes : new int[] {1_000_000, 1_048_000, 1_048_588 - 61 - 11}) {
            producer.send(new ProducerRecord<>(topic, 0, NOW, null, noise(bytes))).get();
        }
    }

    /** Producers that interleave, commit and abort, one that aborts late, and one without transactions. */
    private void transactions(String topic) throws ExecutionException, InterruptedException {
        List<KafkaProducer<byte[], byte[]>> transactional = new ArrayList<>();
        for (int n = 0; n < 4; n++) {
            var producer = producer(n % 2 == 0 ? "lz4" : "none", Map.of("transactional.id", topic + n));
            producer.initTransactions();
            transactional.add(producer);
        }
        var late = transactional.get(3);
        var plain = producer("none", Map.of());
        late.beginTransaction();
        send(late, topic, 0);
        for (int round = 0; round < Math.max(6, size / 20); round++) {
            for (int n = 0; n < 3; n++) {
                transactional.get(n).beginTransaction();
            }
            for (int i = 0; i < 8; i++) {
                for (int n = 0; n < 3; n++) {
                    send(transactional.get(n), topic, round * 8 + i);
                    if (i % 3 == 0) {
                        transactional.get(n).flush();
                    }
                }
                send(plain, topic, round * 8 + i);
            }
            for (int n = 0; n < 3; n++) {
                if ((round + n) % 3 == 0) {
                    // What isn't sent when it aborts never reaches the log.
                    transactional.get(n).flush();
                    transactional.get(n).abortTransaction();
                } else {
                    transactional.get(n).commitTransaction();
                }
            }
            send(late, topic, round);
        }
        plain.flush();
        late.flush();
        late.abortTransaction();
    }

    private void plain(String topic) throws ExecutionException, InterruptedException {
        var producer = producer("none", Map.of());
        send(producer, topic, 0);
        producer.flush();
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic, int i) {
        for (int partition = 0; partition < 3; partition++) {
            producer.send(record(topic, partition, i), this::check);
        }
    }

    /** Overwrites keys until the cleaner has left holes inside batches and between them, then adds a tail. */
    private void compacted(Admin admin) throws Exception {
        String topic = create(admin, "compacted", 2, Map.of("cleanup.policy", "compact",
            "segment.ms", "1000", "min.cleanable.dirty.ratio", "0.01", "min.compaction.lag.ms", "0"));
        long before = count(topic);
        // The time of the segments that are there, and on from it: only that rolls them.
        long start = NOW + round * 100_000L;
        var producer = producer("lz4", Map.of());
        int keys = Math.max(10, size / 4);
        for (int pass = 0; pass < 6; pass++) {
            for (int i = 0; i < keys; i++) {
                // A third of the keys is written once and stays, so that batches keep some of their records.
                String key = i % 3 == 0 ? "once-" + pass + "-" + i : "often-" + i;
                byte[] value = pass == 5 && i % 10 == 1 ? null : noise(100);
                // Time moves on by the record: that rolls the segment, and only closed ones are cleaned.
                long time = start + pass * 10_000L + i;
                producer.send(new ProducerRecord<>(topic, i % 2, time, key.getBytes(), value, headers(i)), this::check);
            }
            producer.flush();
        }
        long written = before + 6L * keys + 2;
        for (int partition = 0; partition < 2; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, start + 90_000, "roll".getBytes(), noise(10)), this::check);
        }
        producer.flush();
        long left = waitForHoles(topic, written);
        System.out.println("cleaner left " + left + " of " + written + " records");
        for (int i = 0; i < 20; i++) {
            byte[] key = ("tail-" + i).getBytes();
            producer.send(new ProducerRecord<>(topic, i % 2, start + 90_001 + i, key, noise(50)), this::check);
        }
        producer.flush();
    }

    private long waitForHoles(String topic, long written) {
        long deadline = System.nanoTime() + 60_000_000_000L;
        long left = written;
        long before = -1;
        // Two counts that agree: the cleaner has had its turn on both partitions.
        while (left * 4 > written * 3 || left != before) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the cleaner left " + left + " of " + written + " records");
            }
            before = left;
            left = count(topic);
        }
        return left;
    }

    private long count(String topic) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            List<TopicPartition> both = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(both);
            consumer.seekToBeginning(both);
            var ends = consumer.endOffsets(both);
            long count = 0;
            while (both.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                count += consumer.poll(Duration.ofMillis(200)).count();
            }
            return count;
        }
    }

    private void check(RecordMetadata written, Exception error) {
        if (error != null) {
            refused.compareAndSet(null, error);
        }
    }

    private byte[] noise(int bytes) {
        byte[] noise = new byte[bytes];
        random.nextBytes(noise);
        return noise;
    }
}
