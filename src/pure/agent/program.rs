//! What the program of pi says of itself: its version, as `--version` prints it, and its tools, as
//! `--help` lists them (agent.md, Is pi there).

use std::cmp::Ordering;
use std::fmt;

use crate::limits::{AGENT_NAME_BYTES, AGENT_VERSION_BYTES};
use crate::pure::text::clean::window_text;

/// Names of tools that are taken from what `pi --help` prints.
const AGENT_TOOLS_MAX: usize = 256;

/// The tools that every pi has that is known. `powershell` is one of the newer ones.
const KNOWN_TOOLS: [&str; 8] =
    ["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"];

/// The heading of the list of tools in what `pi --help` prints.
const TOOLS_HEADING: &str = "Built-in Tool Names:";

/// A version, ordered as semver.org says: one with a suffix comes before the one without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major, minor, patch.
    numbers: [u64; 3],
    /// What stands behind a dash, without it; empty in a release.
    prerelease: String,
    /// All of it, without a `v` in front.
    text: String,
}

impl Version {
    /// A version that a text is, with a `v` in front or without.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = Self::at_start(text.strip_prefix('v').unwrap_or(text))?;
        rest.is_empty().then_some(version)
    }

    /// The version in what a program printed: the first line that is one as a whole, or else the
    /// first one that stands anywhere. (Warnings of Node come before it, and may name another
    /// version.)
    pub fn find(output: &[u8]) -> Option<Self> {
        let clean = window_text(output, false);
        let mut lines = clean.lines().map(str::trim);
        lines.clone().find_map(Self::parse).or_else(|| lines.find_map(Self::within))
    }

    /// The first version in a line.
    fn within(line: &str) -> Option<Self> {
        let begins = |at: usize| {
            let before = line[..at].chars().next_back();
            // `pi-0.70.0` and `v0.70.0` have one, `1.0.70.0` and `x0.70.0` do not.
            let before = before.filter(|c| *c != 'v');
            before.is_none_or(|c| !c.is_alphanumeric() && c != '.')
        };
        let digits = line.char_indices().filter(|(_, c)| c.is_ascii_digit());
        let mut places = digits.map(|(at, _)| at).filter(|at| begins(*at));
        places.find_map(|at| {
            let (version, rest) = Self::at_start(&line[at..])?;
            // A fourth number makes it something else: an address, say.
            let mut behind = rest.chars();
            let more =
                behind.next() == Some('.') && behind.next().is_some_and(|c| c.is_alphanumeric());
            (!more).then_some(version)
        })
    }

    /// The version that a text begins with, and the rest of the text.
    fn at_start(text: &str) -> Option<(Self, &str)> {
        let mut numbers = [0; 3];
        let mut rest = text;
        for (at, number) in numbers.iter_mut().enumerate() {
            if at > 0 {
                rest = rest.strip_prefix('.')?;
            }
            let (digits, behind) = split_while(rest, |c| c.is_ascii_digit());
            *number = digits.parse().ok()?;
            rest = behind;
        }
        let suffix = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let mut prerelease = "";
        if let Some(behind) = rest.strip_prefix('-') {
            (prerelease, rest) = split_while(behind, suffix);
        }
        if let Some(behind) = rest.strip_prefix('+') {
            (_, rest) = split_while(behind, suffix);
        }
        let whole = text[..text.len() - rest.len()].to_owned();
        let fits = whole.len() <= AGENT_VERSION_BYTES;
        let version = Self { numbers, prerelease: prerelease.to_owned(), text: whole };
        fits.then_some((version, rest))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Version {
    /// Whether this version comes before the other one. What stands behind a `+` does not count.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Less
    }

    fn order(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        let suffixes = match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => by_parts(&self.prerelease, &other.prerelease),
        };
        numbers.then(suffixes)
    }
}

/// The order of two suffixes: part by part, numbers by their size and before words, the shorter
/// one first where all is the same up to there.
fn by_parts(one: &str, other: &str) -> Ordering {
    let key = |part: &str| match part.parse::<u64>() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    };
    one.split('.').map(key).cmp(other.split('.').map(key))
}

/// A text in two: while its characters fit, and from the first one that does not.
fn split_while(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()))
}

/// The tools that `pi --help` lists: the names at two blanks below their heading, up to the first
/// line that has none. `None`: there is no such list.
pub fn tools_in(help: &[u8]) -> Option<Vec<String>> {
    let clean = window_text(help, false);
    let (_, list) = clean.split_once(TOOLS_HEADING)?;
    let name_of = |line: &str| {
        let (name, _) = split_while(line.strip_prefix("  ")?, |c| !c.is_whitespace());
        let fits = !name.is_empty() && name.len() <= AGENT_NAME_BYTES;
        fits.then(|| name.to_owned())
    };
    let lines = list.lines().skip(1).take(AGENT_TOOLS_MAX);
    let names: Vec<String> = lines.map_while(name_of).collect();
    (!names.is_empty()).then_some(names)
}

/// The tools of a pi that does not list them.
pub fn known_tools() -> Vec<String> {
    KNOWN_TOOLS.map(str::to_owned).to_vec()
}

/// Names of tools as pi has them, whatever their case. `others`: a name that pi does not have is
/// taken as it is, for an extension may have it. Errors: the first name that nobody has.
pub fn mapped_tools<'a>(
    asked: &'a [String],
    tools: &[String],
    others: bool,
) -> Result<Vec<String>, &'a str> {
    let own = |name: &String| {
        let exact = tools.iter().find(|tool| *tool == name);
        exact.or_else(|| tools.iter().find(|tool| tool.eq_ignore_ascii_case(name.trim())))
    };
    let map = |name: &'a String| match own(name) {
        Some(tool) => Ok(tool.clone()),
        None if others => Ok(name.clone()),
        None => Err(name.as_str()),
    };
    asked.iter().map(map).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(output: &str) -> String {
        Version::find(output.as_bytes()).map_or_else(String::new, |version| version.to_string())
    }

    /// rule: agent.md, Is pi there: The version is parsed from whatever `pi --version` prints
    #[test]
    fn a_version_is_found_in_whatever_a_program_prints() {
        for (output, version) in [
            ("0.87.1\n", "0.87.1"),
            ("v0.70.0-beta.1\n", "0.70.0-beta.1"),
            ("pi 1.5.2 (2026-01-02)\n", "1.5.2"),
            ("pi-coding-agent@0.73.1", "0.73.1"),
            ("\u{1b}[1mpi\u{1b}[0m v0.73.1+build.5\n", "0.73.1+build.5"),
            ("(node:1) Warning: Node 20.1.0 is old\n(Use `node`)\n0.87.1\n", "0.87.1"),
            ("listening on 127.0.0.1\npi 2.0.10.\n", "2.0.10"),
            ("", ""),
            ("garbage 1.2 3\n", ""),
            ("10.0.0.1 x1.2.3 1.2.99999999999999999999999", ""),
            ("é1.2.3", ""),
        ] {
            assert_eq!(found(output), version, "{output:?}");
        }
        assert_eq!(found(&format!("1.2.3-{}", "x".repeat(AGENT_VERSION_BYTES))), "");
    }

    /// rule: agent.md, Is pi there: A prerelease of the oldest supported version is older than it
    #[test]
    fn versions_are_ordered_as_semver_says() {
        let version = |text: &str| Version::parse(text).expect("a version");
        let order = "0.9.9 0.69.9 0.70.0-1 0.70.0-2 0.70.0-10 0.70.0-alpha 0.70.0-beta 0.70.0-beta.1 \
            0.70.0 0.70.1 0.100.0 1.0.0";
        let order: Vec<&str> = order.split(' ').collect();
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                let found = version(one).order(&version(other));
                assert_eq!(found, at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(version("v0.70.0+x").order(&version("0.70.0")), Ordering::Equal);
        for text in ["0.70", "latest", "0.70.0 ", "", "v", "0.70.0.1", ">=0.70.0"] {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
    }

    /// rule: agent.md, agent_execute, params: Names of tools are held against what `pi --help`
    ///   lists, else against the known set
    #[test]
    fn tools_are_the_names_at_two_blanks_below_their_heading() {
        let help = "Usage\n  --x\n\n\u{1b}[1mBuilt-in Tool Names:\u{1b}[22m\n  read   - Read\n  \
                    ls\n\nMore:\n  no - tool\n";
        assert_eq!(tools_in(help.as_bytes()), Some(vec!["read".to_owned(), "ls".to_owned()]));
        assert_eq!(tools_in(b"Built-in Tool Names:\n\n  read - Read\n"), None);
        assert_eq!(tools_in(b"Usage: pi\n"), None);
        let many = format!("{TOOLS_HEADING}\n{}", "  a\n".repeat(10 * AGENT_TOOLS_MAX));
        assert_eq!(tools_in(many.as_bytes()).map(|names| names.len()), Some(AGENT_TOOLS_MAX));
    }

    /// rule: agent.md, agent_execute, params: Names of tools are mapped without regard to case
    #[test]
    fn names_of_tools_are_mapped_to_those_of_pi() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let tools = known_tools();
        let asked = words(&["Read", "BASH", "ls"]);
        assert_eq!(mapped_tools(&asked, &tools, false), Ok(words(&["read", "bash", "ls"])));
        let asked = words(&["Read", "Deploy"]);
        assert_eq!(mapped_tools(&asked, &tools, false), Err("Deploy"));
        assert_eq!(mapped_tools(&asked, &tools, true), Ok(words(&["read", "Deploy"])));
        // Two tools that differ in case only are told apart where the case is right.
        let tools = words(&["Ls", "ls"]);
        assert_eq!(mapped_tools(&words(&["ls", "LS"]), &tools, false), Ok(words(&["ls", "Ls"])));
    }
}
