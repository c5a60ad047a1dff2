//! What the tests of logs that lose something share: a session that prints what it is told to, and
//! its pages held against all that it has printed.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::{Execd, eventually, session_of};

/// The smallest bound that there is.
pub const KEEP_BYTES: u64 = 1 << 20;
pub const BOUND: [&str; 2] = ["--log-keep-bytes", "1048576"];
/// Prints the numbers of each range that it reads.
const PRINT_RANGES: &str = "echo up; while read a b; do seq -f %07.0f $a $b; done; echo done";

/// Lines as `PRINT_RANGES` prints them.
pub fn lines(from: u64, to: u64) -> Vec<u8> {
    (from..=to).flat_map(|n| format!("{n:07}\n").into_bytes()).collect()
}

/// A session that prints ranges of lines, and all that it has printed.
pub struct Printer {
    pub session: u64,
    pub wrote: Vec<u8>,
    next: u64,
}

impl Printer {
    pub fn start(execd: &mut Execd) -> Self {
        let result = execd.open_with(PRINT_RANGES, json!({"shell": "sh"}));
        Self { session: session_of(&result), wrote: b"up\n".to_vec(), next: 1 }
    }

    /// Prints so many more lines; execd has read them all when this is over.
    pub fn print(&mut self, execd: &mut Execd, count: u64) {
        let (from, to) = (self.next, self.next + count - 1);
        let chars = format!("{from} {to}\\n");
        execd.start_request("write_stdin", json!({"session_id": self.session, "chars": chars}));
        self.wrote.extend(lines(from, to));
        self.next = to + 1;
        let whole = self.wrote.len();
        eventually("the command is not held up", || {
            execd.listed(self.session).expect("it runs")["output_bytes_total"] == whole
        });
    }

    /// Waits until the log has all of it.
    pub fn until_logged(&self, execd: &mut Execd) {
        eventually("the log has it all", || {
            let listed = execd.listed(self.session).expect("it runs");
            let log = listed["log_path"].as_str().and_then(|path| std::fs::read(path).ok());
            log.is_some_and(|log| log == self.wrote)
        });
    }

    /// Lets it end, and gives what is said of the end.
    pub fn end(&mut self, execd: &mut Execd) -> Value {
        let end = json!({"session_id": self.session, "eof": true, "yield_time_ms": 30_000});
        let end = execd.write(end);
        self.wrote.extend(b"done\n");
        assert_eq!(end["exit_code"], 0, "the command notices nothing: {end}");
        assert_eq!(end["output_bytes_total"], self.wrote.len(), "{end}");
        end
    }

    /// All pages and all gaps together are what it has printed. Gives how much is there.
    pub fn check(&self, execd: &mut Execd) -> u64 {
        let (mut at, mut there) = (0, 0);
        let whole = self.wrote.len() as u64;
        loop {
            let params = json!({"session_id": self.session, "from": at, "view": "b64",
                "max_bytes": 1 << 20});
            let page = execd.result("read_output", params);
            let number = |name: &str| page[name].as_u64().unwrap_or_else(|| panic!("{page}"));
            let (from, to) = (number("from"), number("to"));
            if from > at {
                assert_eq!(page["gap"], json!([at, from]), "what is missing is told");
            }
            let bytes = STANDARD.decode(page["data_b64"].as_str().expect("bytes")).expect("base64");
            let place = |at: u64| usize::try_from(at).expect("a place");
            assert!(bytes == self.wrote[place(from)..place(to)], "{from} to {to}: other bytes");
            assert_eq!(number("total_bytes"), whole);
            there += to - from;
            assert!(to > at || to == whole, "each page leads on: from {from} to {to}");
            at = to;
            if at == whole {
                return there;
            }
        }
    }

    /// The same, where some was lost: the reply of the end says so.
    pub fn check_loss(&self, execd: &mut Execd, end: &Value) -> u64 {
        let there = self.check(execd);
        let told = end["log_complete"] == false && end["failure_message"].is_string();
        assert!(told || there == self.wrote.len() as u64, "a loss that nobody tells of: {end}");
        there
    }
}

/// What the logs in a directory take of the disk, without the facts beside them.
pub fn taken(logs: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let names = std::fs::read_dir(logs).expect("the log directory").flatten();
    let logs = names.filter(|name| name.file_name().to_string_lossy().contains(".log"));
    // One may go between its name and the look at it.
    logs.map(|name| name.metadata().map_or(0, |found| found.blocks() * 512)).sum()
}
