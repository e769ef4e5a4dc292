import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * How long a record takes to a reader of the source, to a reader of the target, and how much later the second is.
 *
 * <p>One process, one clock: records of {@code --topic} are sent at a steady rate, and a consumer on either cluster
 * notes when each came in. Those of the first {@code --warm-up} seconds don't count. Prints {@code measuring} when
 * the counted part begins, {@code measured} when its last record was read everywhere, and a line per quantity.
 */
final class Latency {
    /** Records that are this late don't come any more. */
    private static final long LATE = 60_000_000_000L;

    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final Options options;
    private final String topic;
    private final int records;
    private final int counted;
    private final long[] sent;
    private volatile boolean over;

    private Latency(Options options) {
        this.options = options;
        topic = options.text("topic");
        int rate = (int) options.number("rate");
        int warmUp = rate * (int) options.number("warm-up");
        counted = rate * (int) options.number("seconds");
        records = warmUp + counted;
        sent = new long[records];
    }

    public static void main(String[] arguments) throws InterruptedException {
        Options options = new Options(arguments, "source", "target", "topic", "prefix", "rate", "size", "warm-up",
            "seconds");
        new Latency(options).run();
    }

    private void run() throws InterruptedException {
        Reader source = new Reader(options.text("source"), topic);
        Reader target = new Reader(options.text("target"), options.text("prefix") + topic);
        produce();
        long deadline = System.nanoTime() + LATE;
        while (source.missing() + target.missing() > 0 && System.nanoTime() < deadline && failure.get() == null) {
            Thread.sleep(10);
        }
        System.out.println("measured");
        over = true;
        source.thread.join();
        target.thread.join();
        if (failure.get() != null || source.missing() + target.missing() > 0) {
            throw new IllegalStateException(source.missing() + " records missing on the source, " + target.missing()
                + " on the target", failure.get());
        }
        print("source", source.arrived, sent);
        print("target", target.arrived, sent);
        print("added", target.arrived, source.arrived);
    }

    /** Sends at the rate; a pause of this process is not made up for by a burst that brokers would queue. */
    private void produce() {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", options.text("source"));
        config.put("linger.ms", 0);
        var bytes = new ByteArraySerializer();
        long interval = 1_000_000_000L / options.number("rate");
        try (var producer = new KafkaProducer<>(config, bytes, bytes)) {
            int partitions = producer.partitionsFor(topic).size();
            long due = System.nanoTime();
            for (int number = 0; number < records && failure.get() == null; number++) {
                if (number == records - counted) {
                    System.out.println("measuring");
                }
                byte[] value = new byte[(int) options.number("size")];
                ByteBuffer.wrap(value).putInt(number);
                LockSupport.parkNanos(due - System.nanoTime());
                sent[number] = System.nanoTime();
                due = Math.max(due + interval, sent[number] - 10 * interval);
                producer.send(new ProducerRecord<>(topic, number % partitions, null, value), (metadata, error) -> {
                    if (error != null) {
                        failure.compareAndSet(null, error);
                    }
                });
            }
        }
    }

    /** Percentiles of the counted records' times from {@code from} to {@code until}, in microseconds. */
    private void print(String name, long[] until, long[] from) {
        long[] times = IntStream.range(records - counted, records).mapToLong(i -> until[i] - from[i]).sorted().toArray();
        System.out.println(name + " p50 " + percentile(times, 50) + " p99 " + percentile(times, 99) + " max "
            + percentile(times, 100));
    }

    private static long percentile(long[] sorted, int percent) {
        int index = (int) Math.ceil(sorted.length * (percent / 100.0)) - 1;
        return sorted[Math.max(0, index)] / 1000;
    }

    /** A consumer of all partitions on a thread of its own. */
    private final class Reader {
        final long[] arrived = new long[records];
        final Thread thread;
        private volatile int count;

        Reader(String bootstrap, String name) {
            Map<String, Object> config = new HashMap<>();
            config.put("bootstrap.servers", bootstrap);
            config.put("auto.offset.reset", "earliest");
            config.put("allow.auto.create.topics", false);
            var bytes = new ByteArrayDeserializer();
            var consumer = new KafkaConsumer<>(config, bytes, bytes);
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(name).forEach(info -> partitions.add(new TopicPartition(name, info.partition())));
            consumer.assign(partitions);
            // Looks up where to begin, so that the first record finds it waiting.
            partitions.forEach(consumer::position);
            thread = new Thread(() -> read(consumer));
            thread.setDaemon(true);
            thread.start();
        }

        int missing() {
            return records - count;
        }

        private void read(KafkaConsumer<byte[], byte[]> consumer) {
            try (consumer) {
                while (!over) {
                    var polled = consumer.poll(Duration.ofMillis(100));
                    long now = System.nanoTime();
                    for (ConsumerRecord<byte[], byte[]> record : polled) {
                        int number = ByteBuffer.wrap(record.value()).getInt();
                        // What came first counts, should a mirror double a record.
                        if (arrived[number] == 0) {
                            arrived[number] = now;
                            count++;
                        }
                    }
                }
            } catch (RuntimeException error) {
                failure.compareAndSet(null, error);
            }
        }
    }
}
