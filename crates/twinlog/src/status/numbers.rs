//! Numbers as people read them.

use std::time::Duration;

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes per second as MB/s of a million bytes: `0.012`, `1.5`, `123`.
pub fn megabytes(bytes_per_second: f64) -> String {
    let megabytes = bytes_per_second / 1e6;
    match megabytes {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{megabytes:.3}"),
        0.1..100.0 => format!("{megabytes:.1}"),
        _ => format!("{megabytes:.0}"),
    }
}

/// The two largest units that are not zero: `12m31s`, `3h05m`, `2d04h`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m{:02}s", seconds % 60),
        3_600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// `1 topic`, `1,234 topics`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn rates_keep_about_three_digits() {
        for (rate, text) in [
            (0.0, "0"),
            (12_345.0, "0.012"),
            (1_540_000.0, "1.5"),
            (99_960_000.0, "100.0"),
            (123_456_789.0, "123"),
        ] {
            assert_eq!(megabytes(rate), text);
        }
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (751, "12m31s"),
            (11_100, "3h05m"),
            (187_200, "2d04h"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }
}
