//! Records inside a batch, read as slices of the decompressed body and never re-encoded: what is
//! kept of a batch keeps its bytes.

use bytes::BufMut;

/// A body that is not made of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record's bytes do not parse")]
pub(crate) struct Malformed;

/// One record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    pub offset_delta: i32,
    pub timestamp_delta: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// From the offset delta on: what stays when only the timestamp is expressed anew.
    tail: &'a [u8],
}

impl RawRecord<'_> {
    /// The same record with another distance to its batch's base timestamp.
    pub fn with_timestamp_delta(&self, timestamp_delta: i64) -> Vec<u8> {
        let mut inside = vec![0];
        put_varlong(&mut inside, timestamp_delta);
        inside.extend(self.tail);
        with_length(&inside)
    }
}

/// Walks the records of a decompressed body; ends after the first that does not parse.
pub(crate) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub fn new(body: &'a [u8]) -> Self {
        Records { rest: body }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = parse(&mut self.rest);
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

fn parse<'a>(rest: &mut &'a [u8]) -> Result<RawRecord<'a>, Malformed> {
    let length = usize::try_from(varint(rest)?).map_err(|_| Malformed)?;
    let mut inside = take(rest, length)?;
    take(&mut inside, 1)?;
    let timestamp_delta = varlong(&mut inside)?;
    let tail = inside;
    let offset_delta = varint(&mut inside)?;
    let key = nullable(&mut inside)?;
    let value = nullable(&mut inside)?;
    let headers = usize::try_from(varint(&mut inside)?).map_err(|_| Malformed)?;
    for _ in 0..headers {
        nullable(&mut inside)?.ok_or(Malformed)?;
        nullable(&mut inside)?;
    }
    if !inside.is_empty() {
        return Err(Malformed);
    }
    Ok(RawRecord {
        offset_delta,
        timestamp_delta,
        key,
        value,
        tail,
    })
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8], Malformed> {
    let (taken, after) = rest.split_at_checked(n).ok_or(Malformed)?;
    *rest = after;
    Ok(taken)
}

fn nullable<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    match varint(rest)? {
        -1 => Ok(None),
        n => take(rest, usize::try_from(n).map_err(|_| Malformed)?).map(Some),
    }
}

fn varint(rest: &mut &[u8]) -> Result<i32, Malformed> {
    i32::try_from(varlong(rest)?).map_err(|_| Malformed)
}

fn varlong(rest: &mut &[u8]) -> Result<i64, Malformed> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err(Malformed)
}

/// One record without headers, for the broker's own control records.
pub(crate) fn encode(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Vec<u8> {
    let mut inside = vec![0];
    put_varlong(&mut inside, timestamp_delta);
    put_varlong(&mut inside, i64::from(offset_delta));
    for field in [key, value] {
        put_varlong(&mut inside, field.map_or(-1, |bytes| bytes.len() as i64));
        inside.put_slice(field.unwrap_or_default());
    }
    put_varlong(&mut inside, 0);
    with_length(&inside)
}

fn with_length(inside: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(inside.len() + 5);
    put_varlong(&mut record, inside.len() as i64);
    record.extend(inside);
    record
}

fn put_varlong(to: &mut Vec<u8>, value: i64) {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    while zigzag >= 0x80 {
        to.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    to.push(zigzag as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_encoded() {
        let mut body = encode(0, 0, Some(b"k"), None);
        body.extend(encode(1, -300, None, Some(&[7; 200])));

        let records: Vec<_> = Records::new(&body).map(Result::unwrap).collect();

        assert_eq!(records.len(), 2);
        assert_eq!(records[0].key, Some(&b"k"[..]));
        assert_eq!(records[0].value, None);
        assert_eq!(
            (records[1].offset_delta, records[1].timestamp_delta),
            (1, -300)
        );
        assert_eq!(records[1].value, Some(&[7; 200][..]));
    }

    #[test]
    fn a_cut_record_is_an_error_and_ends_the_walk() {
        let body = encode(0, 0, Some(b"key"), Some(b"value"));

        for cut in 1..body.len() {
            let walked: Vec<_> = Records::new(&body[..cut]).collect();
            assert!(matches!(walked[..], [Err(Malformed)]), "cut at {cut}");
        }
    }
}
