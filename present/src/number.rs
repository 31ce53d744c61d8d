//! Numbers for people.

/// With thousands separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// In at most seven characters: `999,999`, then `12.34 M`.
pub fn compact(number: u64) -> String {
    if number < 1_000_000 {
        return grouped(number);
    }
    const UNITS: [(f64, char); 5] = [(1e6, 'M'), (1e9, 'G'), (1e12, 'T'), (1e15, 'P'), (1e18, 'E')];
    let value = number as f64;
    // A value that would round up to 1000 belongs to the next unit.
    let (scale, unit) =
        UNITS.into_iter().rev().find(|(scale, _)| value >= scale * 0.9995).unwrap_or(UNITS[0]);
    let scaled = value / scale;
    let decimals = if scaled >= 99.95 { 1 } else { 2 };
    format!("{scaled:.decimals$} {unit}")
}

/// In at most five characters: `9,999`, then `12.3k`, `1.23M`.
pub fn brief(number: u64) -> String {
    if number < 10_000 {
        return grouped(number);
    }
    let (mut scaled, mut units) = (number as f64, " kMGTPE".chars().peekable());
    // A value that would round up to 1000 belongs to the next unit.
    while scaled >= 999.5 && units.next().is_some() {
        scaled /= 1000.0;
    }
    let decimals = if scaled >= 99.95 {
        0
    } else if scaled >= 9.995 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$}{}", units.peek().unwrap_or(&'?'))
}

/// A share of a whole: `12.3 %`; a dash where there is no whole.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".into(),
        _ => format!("{:.1} %", part as f64 / whole as f64 * 100.0),
    }
}

/// A rate that may be small: `0.0123 %`.
pub fn rate(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64 * 100.0;
    match share {
        _ if whole == 0 => "-".into(),
        s if s >= 1.0 || part == 0 => format!("{s:.1} %"),
        s if s >= 0.01 => format!("{s:.2} %"),
        s => format!("{s:.4} %"),
    }
}

/// A duration: `1.23 s`, `12.3 ms`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn compact_numbers_fit_seven_characters() {
        for (number, text) in [
            (999_999, "999,999"),
            (1_000_000, "1.00 M"),
            (12_345_678, "12.35 M"),
            (999_499_999, "999.5 M"),
            (999_999_999, "1.00 G"),
            (u64::MAX, "18.45 E"),
        ] {
            assert_eq!(compact(number), text);
            assert!(compact(number).len() <= 7, "{text}");
        }
    }

    #[test]
    fn brief_numbers_fit_five_characters() {
        for (number, text) in [
            (9_999, "9,999"),
            (10_000, "10.0k"),
            (99_960, "100k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (123_456_789, "123M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(brief(number), text);
            assert!(text.len() <= 5);
        }
    }

    #[test]
    fn a_share_of_nothing_is_no_number() {
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(rate(1, 100_000), "0.0010 %");
        assert_eq!(rate(0, 5), "0.0 %");
    }
}
