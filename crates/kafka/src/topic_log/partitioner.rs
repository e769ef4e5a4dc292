//! Which partition a key goes to (`BuiltInPartitioner.partitionForKey`): a 32-bit MurmurHash2 of
//! its bytes.

/// The partition, of `partitions` many, that Java's producer puts `key` into; 0 if there are none.
pub fn partition_of_key(key: &[u8], partitions: usize) -> i32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    let Ok(partitions @ 1..) = u32::try_from(partitions) else {
        return 0;
    };
    // Below 2^31, because `positive` is.
    (positive % partitions) as i32
}

/// MurmurHash2 with Kafka's seed (`org.apache.kafka.common.utils.Utils.murmur2`).
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    // Truncation as in Java: lengths are 32 bits there.
    let mut hash = SEED ^ data.len() as u32;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own `UtilsTest`.
    #[test]
    fn keys_hash_as_in_java() {
        for (key, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expected, "{key}");
        }
    }

    #[test]
    fn a_negative_hash_still_names_a_partition() {
        assert_eq!(
            partition_of_key(b"21", 25),
            ((-973_932_308i32) & 0x7fff_ffff) % 25
        );
        assert_eq!(partition_of_key(b"21", 0), 0);
    }
}
