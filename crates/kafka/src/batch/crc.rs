//! CRC-32C, and its correction for changed leading bytes without reading the rest.
//!
//! A CRC is linear: if `a` and `b` differ only in their first bytes, `crc(a) ^ crc(b)` is the
//! difference of the CRCs of those bytes, multiplied by x^(8n) modulo the polynomial, n being the
//! number of bytes that follow. Besides being independent of the size, this keeps a checksum wrong
//! that was wrong before, so that the target refuses a damaged body.

/// The polynomial of CRC-32C, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The number 1 in the reversed notation.
const ONE: u32 = 1 << 31;
/// `SHIFTS[j][v]` is x^(8·v·256^j): what v·256^j following zero bytes multiply a CRC by.
static SHIFTS: [[u32; 256]; 4] = shifts();

/// CRC-32C of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32 as magic 0 and 1 use it (the one of zip).
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iso_hdlc(bytes)
}

/// The CRC after leading bytes changed from `old` to `new`, both of one length, with `following`
/// bytes behind them.
pub(super) fn corrected(crc: u32, old: &[u8], new: &[u8], following: u32) -> u32 {
    debug_assert_eq!(old.len(), new.len());
    crc ^ shifted(crc32c(old) ^ crc32c(new), following)
}

/// What `difference` becomes behind `bytes` more bytes.
fn shifted(difference: u32, bytes: u32) -> u32 {
    let digits = bytes.to_le_bytes();
    SHIFTS
        .iter()
        .zip(digits)
        .filter(|(_, digit)| *digit != 0)
        .fold(difference, |crc, (shifts, digit)| {
            multiply(shifts[usize::from(digit)], crc)
        })
}

/// `a` times `b` modulo the polynomial.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut bit = ONE;
    let mut product = 0;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 != 0 {
            (b >> 1) ^ POLYNOMIAL
        } else {
            b >> 1
        };
        bit >>= 1;
    }
    product
}

const fn shifts() -> [[u32; 256]; 4] {
    let mut table = [[ONE; 256]; 4];
    let mut step = ONE >> 8;
    let mut j = 0;
    while j < 4 {
        let mut v = 1;
        while v < 256 {
            table[j][v] = multiply(step, table[j][v - 1]);
            v += 1;
        }
        step = multiply(step, table[j][255]);
        j += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_corrected_checksum_is_that_of_the_changed_bytes() {
        let mut bytes: Vec<u8> = (0..70_000u32)
            .map(|i| ((i >> 4) * (i % 13)) as u8)
            .collect();
        for end in (40..400).chain([4_135, 65_575, 65_576, 65_577, 70_000]) {
            let (old, before) = (bytes[..40].to_vec(), crc32c(&bytes[..end]));
            bytes[..40]
                .iter_mut()
                .for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(1));

            let crc = corrected(before, &old, &bytes[..40], (end - 40) as u32);

            assert_eq!(crc, crc32c(&bytes[..end]), "{end} bytes");
        }
    }

    proptest! {
        #[test]
        fn shifts_add_up_over_all_lengths(difference: u32, total: u32, part: u32) {
            let part = part.min(total);

            let twice = shifted(shifted(difference, part), total - part);

            prop_assert_eq!(twice, shifted(difference, total));
        }
    }
}
