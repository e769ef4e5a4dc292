import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Compares topics of two clusters, record by record: partition, order, key, value, headers in order, timestamp.
 *
 * <p>The source is read committed up to its end at the start of each partition; the target is read uncommitted, so
 * that whatever was written too much is seen. What is missing may still arrive until the deadline; what differs, or
 * is too much, fails at once. Prints a line per topic and each difference, and exits with 1 if there was one.
 *
 * <p>{@code --topics}: the two sequences are equal. {@code --numbered}: so too, and they hold the numbers of
 * {@link Load}, each once and in order. {@code --compacted}: the cleaners of both sides remove records at their own
 * pace, so what is compared is what no cleaner may change: the last record of each key that isn't a tombstone, in
 * log order, looked at again until both sides agree. Records of one key must differ in time there, so that what the
 * target has twice is found.
 */
final class Compare {
    private static final int DIFFERENCES_SHOWN = 10;

    private final KafkaConsumer<byte[], byte[]> source;
    private final KafkaConsumer<byte[], byte[]> target;
    private final String prefix;
    private final boolean identicalOffsets;
    private final long deadline;
    private int differences;

    private Compare(Options options) {
        source = consumer(options.text("source"), "read_committed");
        target = consumer(options.text("target"), options.text("target-isolation", "read_uncommitted"));
        prefix = options.text("prefix", "");
        identicalOffsets = Boolean.parseBoolean(options.text("identical-offsets", "false"));
        deadline = System.nanoTime() + options.number("seconds") * 1_000_000_000L;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Options options = new Options(arguments, "source", "target", "prefix", "topics", "numbered", "compacted",
            "seconds", "target-isolation", "identical-offsets");
        Compare compare = new Compare(options);
        for (String topic : options.list("topics")) {
            compare.sequences(topic, false);
        }
        for (String topic : options.list("numbered")) {
            compare.sequences(topic, true);
        }
        for (String topic : options.list("compacted")) {
            compare.lastOfEachKey(topic);
        }
        System.out.println(compare.differences == 0 ? "all equal" : compare.differences + " differences");
        System.exit(compare.differences == 0 ? 0 : 1);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("isolation.level", isolation);
        config.put("auto.offset.reset", "none");
        config.put("allow.auto.create.topics", false);
        config.put("max.partition.fetch.bytes", 4 << 20);
        config.put("fetch.max.wait.ms", 50);
        var bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(config, bytes, bytes);
    }

    private void sequences(String topic, boolean numbered) throws InterruptedException {
        int before = differences;
        long records = 0;
        int partitions = partitions(topic);
        for (int partition = 0; partition < partitions; partition++) {
            records += sequence(topic, partition, numbered);
        }
        summary(topic, partitions, records, before);
    }

    private long sequence(String topic, int partition, boolean numbered) {
        Reader read = new Reader(source, topic, partition);
        Reader mirrored = new Reader(target, prefix + topic, partition);
        String place = topic + "-" + partition;
        long count = 0;
        while (true) {
            ConsumerRecord<byte[], byte[]> expected = read.next(read.end);
            if (expected == null) {
                break;
            }
            ConsumerRecord<byte[], byte[]> got = mirrored.next(Long.MAX_VALUE);
            if (got == null) {
                return differ(place, count, "missing on the target from here: " + show(expected), count);
            }
            String what = difference(expected, got);
            if (what != null) {
                // One slip shifts all that follows: nothing behind it says more.
                return differ(place, count, what + "\n  source " + show(expected) + "\n  target " + show(got), count);
            }
            if (numbered && ByteBuffer.wrap(got.value()).getLong() != count) {
                return differ(place, count, "expected number " + count + " in " + show(got), count);
            }
            count++;
        }
        ConsumerRecord<byte[], byte[]> extra = mirrored.next(mirrored.endNow());
        if (extra != null) {
            differ(place, count, "too much on the target: " + show(extra), count);
        }
        return count;
    }

    private void lastOfEachKey(String topic) throws InterruptedException {
        int partitions = partitions(topic);
        int before = differences;
        long records = 0;
        for (int partition = 0; partition < partitions; partition++) {
            String difference;
            do {
                List<ConsumerRecord<byte[], byte[]>> expected = live(source, topic, partition);
                List<ConsumerRecord<byte[], byte[]>> got = live(target, prefix + topic, partition);
                difference = firstDifference(expected, got);
                if (difference == null) {
                    records += expected.size();
                } else if (late()) {
                    differ(topic + "-" + partition, 0, difference, 0);
                } else {
                    Thread.sleep(200);
                }
            } while (difference != null && !late());
        }
        summary(topic, partitions, records, before);
    }

    /** The last record of each key, in log order, tombstones left out. */
    private List<ConsumerRecord<byte[], byte[]>> live(KafkaConsumer<byte[], byte[]> from, String topic, int partition) {
        Reader reader = new Reader(from, topic, partition);
        Map<ByteBuffer, ConsumerRecord<byte[], byte[]>> last = new LinkedHashMap<>();
        for (var record = reader.next(reader.end); record != null; record = reader.next(reader.end)) {
            ByteBuffer key = ByteBuffer.wrap(record.key());
            var before = last.remove(key);
            if (before != null && before.timestamp() == record.timestamp()) {
                differ(topic + "-" + partition, record.offset(), "doubled: " + show(before) + "\n  and " + show(record), 0);
            }
            if (record.value() != null) {
                last.put(key, record);
            }
        }
        return new ArrayList<>(last.values());
    }

    private String firstDifference(
        List<ConsumerRecord<byte[], byte[]>> expected, List<ConsumerRecord<byte[], byte[]>> got) {
        for (int i = 0; i < Math.min(expected.size(), got.size()); i++) {
            String what = difference(expected.get(i), got.get(i));
            if (what != null) {
                return "live record " + i + ": " + what + "\n  source " + show(expected.get(i))
                    + "\n  target " + show(got.get(i));
            }
        }
        return expected.size() == got.size() ? null
            : expected.size() + " live keys on the source, " + got.size() + " on the target";
    }

    private String difference(ConsumerRecord<byte[], byte[]> expected, ConsumerRecord<byte[], byte[]> got) {
        if (!Arrays.equals(expected.key(), got.key())) {
            return "key";
        }
        if (!Arrays.equals(expected.value(), got.value())) {
            return "value";
        }
        if (expected.timestamp() != got.timestamp()) {
            return "timestamp";
        }
        Header[] left = expected.headers().toArray();
        Header[] right = got.headers().toArray();
        if (left.length != right.length) {
            return "number of headers";
        }
        for (int i = 0; i < left.length; i++) {
            if (!Objects.equals(left[i].key(), right[i].key()) || !Arrays.equals(left[i].value(), right[i].value())) {
                return "header " + i;
            }
        }
        return identicalOffsets && expected.offset() != got.offset() ? "offset" : null;
    }

    /** How many partitions both sides have; waits for the target to have as many as the source. */
    private int partitions(String topic) throws InterruptedException {
        int expected = source.partitionsFor(topic).size();
        int got = 0;
        while (true) {
            var there = target.partitionsFor(prefix + topic);
            got = there == null ? 0 : there.size();
            if (got == expected || late()) {
                break;
            }
            Thread.sleep(50);
        }
        if (got != expected) {
            differ(topic, 0, expected + " partitions on the source, " + got + " on the target", 0);
        }
        return Math.min(expected, got);
    }

    private long differ(String place, long record, String what, long result) {
        if (differences < DIFFERENCES_SHOWN) {
            System.out.println("DIFFERENT " + place + " record " + record + ": " + what);
        }
        differences++;
        return result;
    }

    private void summary(String topic, int partitions, long records, int before) {
        String verdict = differences == before ? "equal" : "DIFFERENT";
        System.out.println(topic + " -> " + prefix + topic + ": " + records + " records in " + partitions
            + " partitions " + verdict);
    }

    private boolean late() {
        return System.nanoTime() > deadline;
    }

    private static String show(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder text = new StringBuilder("offset " + record.offset() + " time " + record.timestamp());
        text.append(" key ").append(show(record.key())).append(" value ").append(show(record.value()));
        for (Header header : record.headers()) {
            text.append(" [").append(header.key()).append('=').append(show(header.value())).append(']');
        }
        return text.toString();
    }

    private static String show(byte[] bytes) {
        if (bytes == null) {
            return "null";
        }
        String hex = HexFormat.of().formatHex(bytes, 0, Math.min(bytes.length, 24));
        return bytes.length <= 24 ? "'" + hex + "'" : "'" + hex + "..' (" + bytes.length + " bytes)";
    }

    /** One partition from its start, record by record. */
    private final class Reader {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final TopicPartition partition;
        private final ArrayDeque<ConsumerRecord<byte[], byte[]>> ahead = new ArrayDeque<>();
        /** The end when reading began. */
        final long end;

        Reader(KafkaConsumer<byte[], byte[]> consumer, String topic, int number) {
            this.consumer = consumer;
            partition = new TopicPartition(topic, number);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            end = endNow();
        }

        long endNow() {
            return consumer.endOffsets(List.of(partition)).get(partition);
        }

        /** The next record before {@code end}; null there, or without an end when none comes until the deadline. */
        ConsumerRecord<byte[], byte[]> next(long end) {
            while (ahead.isEmpty()) {
                if (consumer.position(partition) >= end || end == Long.MAX_VALUE && late()) {
                    return null;
                }
                consumer.poll(Duration.ofMillis(100)).forEach(ahead::add);
            }
            return ahead.peek().offset() >= end ? null : ahead.poll();
        }
    }
}
