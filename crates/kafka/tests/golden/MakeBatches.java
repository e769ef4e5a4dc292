// Makes the golden batches beside this file with Java's own classes, and says how Java reads each of them.
//
// Needs kafka-clients 4.3.1 and what it depends on in the folder `libs`:
//   java -cp 'libs/*' MakeBatches.java <folder to write to>
//
// NAME.bin is a record set as a broker would send it. NAME.txt has a line per batch and per record; bytes are written as
// x and hexadecimal digits, or as length and CRC-32C if they are many. `legacy` is a message of magic 0 or 1.

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;

public class MakeBatches {
    static final long NOW = 1_700_000_000_000L;
    static Path folder;

    public static void main(String[] args) throws IOException {
        folder = Path.of(args[0]);
        for (CompressionType type : CompressionType.values()) {
            Compression codec = Compression.of(type).build();
            write("v2-" + type.name, create((byte) 2, codec, 1000, MakeBatches::tricky));
            if (type == CompressionType.ZSTD) continue;
            write("v0-" + type.name, create((byte) 0, codec, 500, MakeBatches::old));
            write("v1-" + type.name, create((byte) 1, codec, 500, MakeBatches::old));
        }
        Compression none = Compression.NONE;
        Compression lz4 = Compression.lz4().build();
        write("v2-large-lz4", create((byte) 2, lz4, 0, MakeBatches::large));
        write("v2-large-snappy", create((byte) 2, Compression.snappy().build(), 0, MakeBatches::large));
        write("v2-stored-lz4", create((byte) 2, lz4, 0, MakeBatches::incompressible));
        write("v2-no-timestamp", create((byte) 2, none, 0, b -> b.append(RecordBatch.NO_TIMESTAMP, null, utf8("v"))));
        for (byte magic : new byte[] {1, 2}) {
            write("v" + magic + "-append-time-gzip", appendTime(magic, Compression.gzip().build()));
            write("v" + magic + "-append-time-none", appendTime(magic, none));
        }
        write("v2-transactional", transactional());
        write("v2-control", control());
        MemoryRecords tombstones = create((byte) 2, lz4, 300, MakeBatches::tombstones);
        write("v2-compacted", compacted(tombstones, offset -> offset % 3 == 1));
        write("v2-compacted-empty", compacted(tombstones, offset -> false));
        write("v0-holes-gzip", create((byte) 0, Compression.gzip().build(), 500, MakeBatches::holes));
        write("v1-holes-snappy", create((byte) 1, Compression.snappy().build(), 500, MakeBatches::holes));
    }

    // Duplicate, null, empty and binary headers; null and empty keys and values; timestamps that go back.
    static void tricky(MemoryRecordsBuilder builder) {
        builder.append(NOW, (byte[]) null, (byte[]) null);
        builder.append(NOW - 86_400_000, new byte[0], new byte[0], new Header[] {
            header("a", "1"), header("a", "2"), header("b", null), header("", ""), header("a", "1")});
        builder.append(NOW + 1, new byte[] {0, -1, -2, 127, -128}, utf8("grün €"), new Header[] {
            new RecordHeader("schlüssel", new byte[] {-1, 0, 1})});
        builder.append(NOW + 5_000_000_000L, utf8("k"), new byte[300], new Header[] {});
        builder.append(RecordBatch.NO_TIMESTAMP, utf8("no timestamp"), null);
        builder.append(0, null, utf8("1970"));
    }

    static void old(MemoryRecordsBuilder builder) {
        for (long i = 0; i < 7; i++) {
            long timestamp = builder.magic() == 0 ? RecordBatch.NO_TIMESTAMP : NOW - 1000 * i;
            builder.append(timestamp, i % 3 == 0 ? null : utf8("key" + i), i % 2 == 0 ? utf8("value".repeat(20)) : null);
        }
    }

    static void holes(MemoryRecordsBuilder builder) {
        for (long offset : new long[] {503, 504, 509}) {
            long timestamp = builder.magic() == 0 ? RecordBatch.NO_TIMESTAMP : NOW;
            builder.appendWithOffset(offset, timestamp, utf8("key"), utf8("at " + offset));
        }
    }

    // More than one LZ4 block (64 KiB) and several snappy chunks (32 KiB).
    static void large(MemoryRecordsBuilder builder) {
        byte[] value = new byte[150_000];
        for (int i = 0; i < value.length; i++) value[i] = (byte) ((i >> 5) * (i % 7));
        builder.append(NOW, utf8("large"), value);
        builder.append(NOW, utf8("after"), utf8("it"));
    }

    static void incompressible(MemoryRecordsBuilder builder) {
        byte[] value = new byte[200];
        new Random(1).nextBytes(value);
        builder.append(NOW, null, value);
    }

    static void tombstones(MemoryRecordsBuilder builder) {
        for (int i = 0; i < 10; i++) builder.append(NOW + i, utf8("key" + i), i % 2 == 0 ? null : utf8("value" + i));
    }

    static MemoryRecords create(byte magic, Compression codec, long offset, Consumer<MemoryRecordsBuilder> fill) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, magic, codec, TimestampType.CREATE_TIME, offset);
        fill.accept(builder);
        return builder.build();
    }

    // As a broker leaves it: the records inside keep the times of their creation.
    static MemoryRecords appendTime(byte magic, Compression codec) {
        MemoryRecords records = create(magic, codec, 70, MakeBatches::old);
        for (MutableRecordBatch batch : records.batches()) {
            batch.setMaxTimestamp(TimestampType.LOG_APPEND_TIME, NOW + 123);
        }
        return records;
    }

    static MemoryRecords transactional() {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), (byte) 2, Compression.NONE,
            TimestampType.CREATE_TIME, 42, RecordBatch.NO_TIMESTAMP, 4242, (short) 7, 99, true, false, 12);
        old(builder);
        return builder.build();
    }

    static MemoryRecords control() {
        MemoryRecords[] sets = {
            MemoryRecords.withEndTransactionMarker(
                7, NOW, 3, 4242, (short) 7, new EndTransactionMarker(ControlRecordType.ABORT, 5)),
            MemoryRecords.withEndTransactionMarker(
                8, NOW, 3, 4243, (short) 1, new EndTransactionMarker(ControlRecordType.COMMIT, 5)),
            MemoryRecords.withLeaderChangeMessage(9, NOW, 3, ByteBuffer.allocate(1024), new LeaderChangeMessage()
                .setLeaderId(1).setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1)))),
        };
        ByteBuffer all = ByteBuffer.allocate(4096);
        for (MemoryRecords set : sets) all.put(set.buffer().duplicate());
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    // As the log cleaner leaves it; it sets the delete horizon because of the tombstones.
    static MemoryRecords compacted(MemoryRecords records, IntPredicate keep) {
        ByteBuffer target = ByteBuffer.allocate(1 << 20);
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(NOW + 10_000, 86_400_000) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return keep.test((int) record.offset());
            }
        };
        records.filterTo(filter, target, BufferSupplier.NO_CACHING);
        target.flip();
        return MemoryRecords.readableRecords(target);
    }

    static void write(String name, MemoryRecords records) throws IOException {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        Files.write(folder.resolve(name + ".bin"), bytes);
        StringBuilder text = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            describe(batch, text);
            for (Record record : batch) describe(record, text);
        }
        Files.writeString(folder.resolve(name + ".txt"), text);
    }

    static void describe(MutableRecordBatch batch, StringBuilder text) {
        batch.ensureValid();
        if (batch.magic() < 2) {
            text.append("legacy last=%d size=%d\n".formatted(batch.lastOffset(), batch.sizeInBytes()));
            return;
        }
        text.append("batch base=%d last=%d size=%d codec=%s count=%d max=%d crc=%08x leader=%d producer=%d/%d/%d".formatted(
            batch.baseOffset(), batch.lastOffset(), batch.sizeInBytes(), batch.compressionType().name,
            batch.countOrNull(), batch.maxTimestamp(), batch.checksum(), batch.partitionLeaderEpoch(),
            batch.producerId(), batch.producerEpoch(), batch.baseSequence()));
        if (batch.timestampType() == TimestampType.LOG_APPEND_TIME) text.append(" append-time");
        if (batch.isTransactional()) text.append(" transactional");
        if (batch.deleteHorizonMs().isPresent()) text.append(" horizon=" + batch.deleteHorizonMs().getAsLong());
        if (batch.isControlBatch()) {
            Record first = batch.iterator().next();
            text.append(" control=" + ControlRecordType.parse(first.key()));
        }
        text.append('\n');
    }

    static void describe(Record record, StringBuilder text) {
        text.append("%d t=%d key=%s value=%s".formatted(
            record.offset(), record.timestamp(), show(record.key()), show(record.value())));
        for (Header header : record.headers()) {
            ByteBuffer value = header.value() == null ? null : ByteBuffer.wrap(header.value());
            text.append(" %s=%s".formatted(show(ByteBuffer.wrap(utf8(header.key()))), show(value)));
        }
        text.append('\n');
    }

    static String show(ByteBuffer buffer) {
        if (buffer == null) return "null";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        if (bytes.length <= 64) return "x" + HexFormat.of().formatHex(bytes);
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return "%d:%08x".formatted(bytes.length, crc.getValue());
    }

    static Header header(String key, String value) {
        return new RecordHeader(key, value == null ? null : utf8(value));
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
