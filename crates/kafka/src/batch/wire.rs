//! The fields that bodies are made of: a reader over them, and the zig-zag variable-length numbers
//! (Java's `ByteUtils`).

use bytes::Bytes;

use super::{BatchError, Problem};

/// Reads fields one after the other; slices it hands out share the body's memory.
pub(super) struct Reader<'a> {
    body: &'a Bytes,
    position: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a Bytes) -> Self {
        Reader {
            body,
            position: 0,
            end: body.len(),
        }
    }

    pub(super) fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Places a problem where the reader is.
    pub(super) fn error(&self, base_offset: i64, problem: Problem) -> BatchError {
        problem.at(base_offset, self.position)
    }

    /// A reader over the next `length` bytes, which this one skips.
    pub(super) fn part(&mut self, length: usize, what: &'static str) -> Result<Self, Problem> {
        if length > self.remaining() {
            return Err(Problem::Truncated(what));
        }
        let position = self.position;
        self.position += length;
        Ok(Reader {
            body: self.body,
            position,
            end: self.position,
        })
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.body[self.position..self.end]
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, Problem> {
        self.fixed::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Problem> {
        let rest = &self.body[self.position..self.end];
        let bytes = *rest.first_chunk().ok_or(Problem::Truncated(what))?;
        self.position += N;
        Ok(bytes)
    }

    pub(super) fn bytes(&mut self, length: usize, what: &'static str) -> Result<Bytes, Problem> {
        let part = self.part(length, what)?;
        Ok(self.body.slice(part.position..part.end))
    }

    /// Bytes behind an [`i32`] varint of their length, -1 for null.
    pub(super) fn nullable_bytes(&mut self, what: &'static str) -> Result<Option<Bytes>, Problem> {
        match self.varint(what)? {
            -1 => Ok(None),
            length => self.bytes(not_negative(what, length)?, what).map(Some),
        }
    }

    /// Bytes behind four bytes of their length, -1 for null.
    pub(super) fn nullable_bytes_fixed(
        &mut self,
        what: &'static str,
    ) -> Result<Option<Bytes>, Problem> {
        match i32::from_be_bytes(self.fixed(what)?) {
            -1 => Ok(None),
            length => self.bytes(not_negative(what, length)?, what).map(Some),
        }
    }

    /// At most 5 bytes. Padded forms are taken, as Java does.
    pub(super) fn varint(&mut self, what: &'static str) -> Result<i32, Problem> {
        let value = u32::try_from(self.unsigned(what, 5)?).map_err(|_| Problem::Varint)?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    /// At most 10 bytes. Padded forms are taken, as Java does.
    pub(super) fn varlong(&mut self, what: &'static str) -> Result<i64, Problem> {
        let value = self.unsigned(what, 10)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn unsigned(&mut self, what: &'static str, most: usize) -> Result<u64, Problem> {
        let rest = &self.body[self.position..self.end];
        let mut value = 0u64;
        for (index, byte) in rest.iter().take(most).enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if index == 9 && bits > 1 {
                return Err(Problem::Varint);
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.position += index + 1;
                return Ok(value);
            }
        }
        if rest.len() < most {
            return Err(Problem::Truncated(what));
        }
        Err(Problem::Varint)
    }
}

/// A count or length read from the wire, if it can be one.
pub(super) fn not_negative(field: &'static str, value: i32) -> Result<usize, Problem> {
    usize::try_from(value).map_err(|_| Problem::Negative {
        field,
        value: value.into(),
    })
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_unsigned(out, u64::from(zigzag32(value)));
}

pub(super) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, zigzag64(value));
}

fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put_varint`] writes.
pub(super) fn varint_len(value: i32) -> usize {
    unsigned_len(u64::from(zigzag32(value)))
}

/// How many bytes [`put_varlong`] writes.
pub(super) fn varlong_len(value: i64) -> usize {
    unsigned_len(zigzag64(value))
}

fn unsigned_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<T>(
        bytes: &[u8],
        read: impl Fn(&mut Reader<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let body = Bytes::copy_from_slice(bytes);
        let mut reader = Reader::new(&body);
        let value = read(&mut reader)?;
        match reader.remaining() {
            0 => Ok(value),
            left => Err(Problem::Trailing(left)),
        }
    }

    #[test]
    fn numbers_too_long_or_too_great_are_errors() {
        let int = |bytes: &[u8]| read(bytes, |reader| reader.varint("number"));
        let long = |bytes: &[u8]| read(bytes, |reader| reader.varlong("number"));

        assert_eq!(int(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(i32::MIN));
        assert_eq!(int(&[0x80, 0x80, 0x00]), Ok(0));
        assert_eq!(int(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(Problem::Varint));
        assert_eq!(
            int(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),
            Err(Problem::Varint)
        );
        assert_eq!(int(&[0x80, 0x80]), Err(Problem::Truncated("number")));
        assert_eq!(int(&[]), Err(Problem::Truncated("number")));
        assert_eq!(
            long(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            Ok(i64::MIN)
        );
        assert_eq!(
            long(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]),
            Err(Problem::Varint)
        );
        assert_eq!(long(&[0x80; 11]), Err(Problem::Varint));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written_and_as_long_as_said(int: i32, long: i64, shift in 0..64) {
            let (int, long) = (int >> (shift % 32), long >> shift);
            let mut bytes = Vec::new();
            put_varint(&mut bytes, int);
            prop_assert_eq!(bytes.len(), varint_len(int));
            prop_assert_eq!(read(&bytes, |reader| reader.varint("number")), Ok(int));

            bytes.clear();
            put_varlong(&mut bytes, long);
            prop_assert_eq!(bytes.len(), varlong_len(long));
            prop_assert_eq!(read(&bytes, |reader| reader.varlong("number")), Ok(long));
        }
    }
}
