//! The hash by which Kafka's default partitioner places a key (`org.apache.kafka.common.utils.Utils.murmur2`).

/// The partition that Java's producer gives a record with this key in a topic of `partitions` partitions.
///
/// Readers of the topic take all partitions, so the place matters for compaction alone: a key that moved would leave a
/// stale value behind where it was.
pub fn partition_of_key(key: &[u8], partitions: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) % partitions.max(1)
}

fn murmur2(data: &[u8]) -> i32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    // Kafka's keys are shorter than 2^31; Java's int arithmetic wraps as `u32` does.
    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        k = k.wrapping_mul(MULTIPLIER);
        k ^= k >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ k.wrapping_mul(MULTIPLIER);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (shift, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * shift);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> 15)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_hashes_as_java_does() {
        // Printed by Utils.murmur2 of kafka-clients 4.3.1.
        for (text, expected) in [
            ("", 275_646_681),
            ("a", -1_563_381_124),
            ("ab", 316_155_434),
            ("abc", 479_470_107),
            ("abcd", -1_323_649_548),
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
        ] {
            assert_eq!(murmur2(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_negative_hash_still_names_a_partition() {
        assert_eq!(
            partition_of_key(b"a", 25),
            (-1_563_381_124_i32 & 0x7fff_ffff) % 25
        );
        assert_eq!(partition_of_key(b"a", 0), 0);
    }
}
