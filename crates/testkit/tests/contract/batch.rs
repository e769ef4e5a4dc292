//! Record batches built by hand, right or wrong on purpose, and read back.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 61;

/// One record to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    /// Milliseconds after the batch's base timestamp.
    pub after_ms: i64,
    /// What the record claims as its distance from the base offset; its position if nothing.
    pub delta: Option<i32>,
}

impl Record {
    pub fn new(key: &str, value: &str) -> Self {
        let (key, value) = (Some(key.into()), Some(value.into()));
        Record {
            key,
            value,
            after_ms: 0,
            delta: None,
        }
    }
}

/// A batch to write. What is left alone is as a producer writes it.
#[derive(Debug, Clone)]
pub struct Batch {
    pub base_offset: i64,
    pub leader_epoch: i32,
    /// Without the codec.
    pub attributes: i16,
    pub codec: u8,
    pub base_timestamp: i64,
    pub max_timestamp: Option<i64>,
    pub producer: (i64, i16),
    pub base_sequence: i32,
    pub count: Option<i32>,
    pub last_offset_delta: Option<i32>,
    pub records: Vec<Record>,
}

impl Batch {
    /// `count` small records of now.
    pub fn of(count: usize) -> Self {
        let record = |n: usize| Record::new(&format!("k{n}"), &format!("value {n}"));
        Batch::with((0..count).map(record).collect())
    }

    /// These records.
    pub fn with(records: Vec<Record>) -> Self {
        Batch {
            base_offset: 0,
            leader_epoch: -1,
            attributes: 0,
            codec: 0,
            base_timestamp: super::now_ms(),
            max_timestamp: None,
            producer: (-1, -1),
            base_sequence: -1,
            count: None,
            last_offset_delta: None,
            records,
        }
    }

    /// With one record of `bytes` bytes.
    pub fn sized(bytes: usize) -> Self {
        Batch::with(vec![Record::new("k", &"x".repeat(bytes))])
    }

    pub fn codec(mut self, codec: u8) -> Self {
        self.codec = codec;
        self
    }

    pub fn at(mut self, timestamp: i64) -> Self {
        self.base_timestamp = timestamp;
        self
    }

    pub fn by(mut self, producer: (i64, i16), base_sequence: i32) -> Self {
        (self.producer, self.base_sequence) = (producer, base_sequence);
        self
    }

    pub fn transactional(mut self) -> Self {
        self.attributes |= 1 << 4;
        self
    }

    pub fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// All bytes of the batch.
    pub fn bytes(&self) -> Bytes {
        let count = self.records.len() as i32;
        let newest = self
            .records
            .iter()
            .map(|record| record.after_ms)
            .max()
            .unwrap_or(0);
        let body = compress(self.codec, &self.body());
        let mut bytes = BytesMut::new();
        bytes.put_i64(self.base_offset);
        bytes.put_i32((HEADER_BYTES - 12 + body.len()) as i32);
        bytes.put_i32(self.leader_epoch);
        bytes.put_i8(2);
        bytes.put_u32(0);
        bytes.put_i16(self.attributes | i16::from(self.codec));
        bytes.put_i32(self.last_offset_delta.unwrap_or(count - 1));
        bytes.put_i64(self.base_timestamp);
        bytes.put_i64(self.max_timestamp.unwrap_or(self.base_timestamp + newest));
        bytes.put_i64(self.producer.0);
        bytes.put_i16(self.producer.1);
        bytes.put_i32(self.base_sequence);
        bytes.put_i32(self.count.unwrap_or(count));
        bytes.put_slice(&body);
        let crc = crc(&bytes);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes.freeze()
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            let mut inside = vec![0];
            put_varlong(&mut inside, record.after_ms);
            put_varlong(&mut inside, i64::from(record.delta.unwrap_or(at as i32)));
            for field in [&record.key, &record.value] {
                put_varlong(
                    &mut inside,
                    field.as_ref().map_or(-1, |bytes| bytes.len() as i64),
                );
                inside.extend(field.iter().flatten());
            }
            put_varlong(&mut inside, 0);
            put_varlong(&mut body, inside.len() as i64);
            body.extend(inside);
        }
        body
    }
}

/// The checksum that belongs into a batch.
pub fn crc(batch: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &batch[21..]) as u32
}

fn put_varlong(to: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        to.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    to.push(zigzag as u8);
}

/// Packs into memory, which can't fail.
fn compress(codec: u8, body: &[u8]) -> Vec<u8> {
    match codec {
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(body).expect("memory takes every write");
            encoder.finish().expect("memory takes every write")
        }
        2 => snap::raw::Encoder::new()
            .compress_vec(body)
            .expect("a small body is packed"),
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(body).expect("memory takes every write");
            encoder.finish().expect("memory takes every write")
        }
        4 => zstd::stream::encode_all(body, 3).expect("memory takes every write"),
        _ => body.to_vec(),
    }
}

/// What a fetched batch says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub crc_fits: bool,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer: (i64, i16),
    pub base_sequence: i32,
    pub count: i32,
    pub bytes: Bytes,
}

impl Fetched {
    pub fn is_control(&self) -> bool {
        self.attributes & 1 << 5 != 0
    }

    /// For the control record of a marker: whether it commits, and its coordinator's epoch.
    pub fn marker(&self) -> Result<(bool, i32)> {
        ensure!(
            self.is_control() && self.bytes.len() == 78,
            "not a marker: {self:?}"
        );
        let mut value = self.bytes.slice(self.bytes.len() - 5..);
        let committed = self.bytes[self.bytes.len() - 9] == 1;
        Ok((committed, value.try_get_i32().context("a marker's value")?))
    }
}

/// The whole batches in `records`, and how many bytes of a cut one follow.
pub fn read(records: &Bytes) -> (Vec<Fetched>, usize) {
    let (mut batches, mut rest) = (Vec::new(), records.clone());
    while rest.len() >= HEADER_BYTES {
        let size = 12 + i32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        if rest.len() < size {
            break;
        }
        batches.push(parse(rest.split_to(size)));
    }
    (batches, rest.len())
}

fn parse(bytes: Bytes) -> Fetched {
    let mut header = bytes.clone();
    let base_offset = header.get_i64();
    header.advance(4);
    let leader_epoch = header.get_i32();
    header.advance(1);
    let stored_crc = header.get_u32();
    Fetched {
        base_offset,
        leader_epoch,
        crc_fits: stored_crc == crc(&bytes),
        attributes: header.get_i16(),
        last_offset_delta: header.get_i32(),
        base_timestamp: header.get_i64(),
        max_timestamp: header.get_i64(),
        producer: (header.get_i64(), header.get_i16()),
        base_sequence: header.get_i32(),
        count: header.get_i32(),
        bytes,
    }
}
