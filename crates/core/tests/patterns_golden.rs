//! Our patterns against `java.util.regex`, on the rows that `golden/java/PatternGolden.java` wrote.
//!
//! We may refuse what Java accepts, if we say that it isn't supported. We never accept what Java
//! refuses, and never match another name.

use twinlog_core::pattern::JavaPattern;

const GOLDEN: &str = include_str!("golden/patterns.tsv");
const ALPHABET: [char; 4] = ['a', 'b', '.', 'A'];
const LENGTH: usize = 4;

#[test]
fn patterns_match_the_names_they_match_in_java() {
    let names: Vec<String> = rows("N").map(unescape).collect();
    let answers_of = |pattern: &str, expected: &str| {
        // The rows are of JDK 17, whose `\b` goes by Unicode's words; since JDK 19 it is ASCII's.
        let by_words = pattern.contains(r"\b") || pattern.contains(r"\B");
        let is_compared = |name: &&String| !by_words || name.is_ascii();
        let compared: Vec<&String> = names.iter().filter(is_compared).collect();
        let expected: String = match expected {
            "error" => expected.to_owned(),
            bits => names
                .iter()
                .zip(bits.chars())
                .filter_map(|(name, bit)| is_compared(&name).then_some(bit))
                .collect(),
        };
        (answers(pattern, &compared), expected)
    };

    let tally = compare_all("P", answers_of);

    assert!(tally.equal > 380, "only {} rows were compared", tally.equal);
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
}

#[test]
fn random_patterns_match_the_names_they_match_in_java() {
    let mut names = Vec::new();
    enumerate(&mut String::new(), &mut names);
    let names: Vec<&String> = names.iter().collect();

    let tally = compare_all("R", |pattern, expected| {
        let found = answers(pattern, &names).map(|bits| hash(&bits));
        (found, expected.to_owned())
    });

    assert!(tally.equal > 400, "only {} rows were compared", tally.equal);
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
}

#[derive(Default)]
struct Tally {
    equal: usize,
    wrong: Vec<String>,
}

fn compare_all(
    kind: &str,
    answers_of: impl Fn(&str, &str) -> (Result<String, String>, String),
) -> Tally {
    let mut tally = Tally::default();
    for row in rows(kind) {
        let (pattern, expected) = row.split_once('\t').expect("a row has two columns");
        match answers_of(&unescape(pattern), expected) {
            (Ok(found), expected) if found == expected => tally.equal += 1,
            (Err(_), expected) if expected == "error" => tally.equal += 1,
            (Err(reason), _) if reason.contains("not supported") => {}
            (found, expected) => {
                tally
                    .wrong
                    .push(format!("{pattern}: expected {expected}, got {found:?}"));
            }
        }
    }
    tally
}

fn rows(kind: &str) -> impl Iterator<Item = &'static str> {
    let prefix = format!("{kind}\t");
    GOLDEN
        .lines()
        .filter_map(move |row| row.strip_prefix(&prefix))
}

/// A 0 or 1 for each name, or why the pattern is refused.
fn answers(pattern: &str, names: &[&String]) -> Result<String, String> {
    let pattern = JavaPattern::of_list(&[pattern]).map_err(|error| error.reason)?;
    let answer = |name: &&String| match pattern.matches(name) {
        Ok(true) => '1',
        Ok(false) => '0',
        Err(_) => '?',
    };
    Ok(names.iter().map(answer).collect())
}

fn enumerate(name: &mut String, names: &mut Vec<String>) {
    names.push(name.clone());
    if name.len() < LENGTH {
        for next in ALPHABET {
            name.push(next);
            enumerate(name, names);
            name.pop();
        }
    }
}

fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn unescape(text: &str) -> String {
    let mut parts = text.split('`');
    let mut units: Vec<u16> = parts.next().unwrap_or_default().encode_utf16().collect();
    for part in parts {
        let (code, rest) = part.split_at(4);
        units.push(u16::from_str_radix(code, 16).expect("a row holds hexadecimal codes"));
        units.extend(rest.encode_utf16());
    }
    String::from_utf16_lossy(&units)
}
