//! A session shown in a terminal: the session's output comes and keys go to the session, until one
//! of the two ends. This is the loop of `execd attach` and of `execd tail -f`; which session is
//! shown is left to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::say::{EXIT_FAILED, complain};
use crate::client::connection::{Connection, Message, message_of};
use crate::limits::{JIGGLE_MS, NS_PER_MS};
use crate::pure::buffer::outbox::Outbox;
use crate::pure::process::life::EXIT_SIGNAL;
use crate::pure::process::signal_names::parse_signal;
use crate::pure::terminal::answers::typed_in;
use crate::pure::terminal::detach_keys::{DetachKeys, Typed};
use crate::pure::terminal::modes::TermModes;
use crate::pure::terminal::queries::QueryFilter;
use crate::sys::io::Io;
use crate::sys::poll::{self, Watch};
use crate::sys::signals::{self, SignalFd};
use crate::sys::stdio::Channel;
use crate::sys::terminal::{Changed, Keys};
use crate::sys::{clock, pty};

/// How long before the end the question may have been.
const TERMINAL_ASKED_MS: u64 = 1_000;

/// How long they are waited for where the terminal does not answer us.
const TERMINAL_LAST_ANSWER_MS: u64 = 500;

/// How long answers of a terminal are waited for that was asked something just before the end of
/// `execd attach`, once it has answered us: whoever has it next would take them for keys.
const TERMINAL_ANSWER_MS: u64 = 50;

/// A program redraws after a gap at most this often.
const REDRAW_PAUSE_MS: u64 = 1_000;

/// Bytes of keys in one request.
const KEYS_READ_BYTES: usize = 4 * 1024;

/// Bytes of keys that wait to be sent by `execd attach`; above, it does not read on.
const KEYS_QUEUE_BYTES: usize = 64 * 1024;

/// Bytes of output that wait for the terminal of `execd attach`; above, it does not read on.
const TERMINAL_QUEUE_BYTES: usize = 64 * 1024;

/// How long a terminal may take for the last output when `execd attach` ends.
const TERMINAL_FLUSH_MS: u64 = 1_000;

/// How long Ctrl-\ is held back when nothing follows it.
const DETACH_KEY_WAIT_MS: u64 = 1_000;

/// Asks the terminal how it is, and what it answers: DSR, see XTerm Control Sequences.
const LAST_QUESTION: &[u8] = b"\x1b[5n";
const LAST_ANSWER: &[u8] = b"\x1b[0n";
/// The byte that Ctrl-\ gives.
const CTRL_BACKSLASH: u8 = 0x1c;

/// Why showing has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The person wants to see no more.
    Detached,
    /// The session has ended: how, for people, and as an exit status.
    Ended(String, i32),
    /// execd is gone, or does not talk to us: why.
    Lost(String),
    /// A signal told us to end.
    Signal(i32),
}

/// A session and the terminal that it is shown in.
#[derive(Debug)]
struct Show {
    connection: Connection,
    session: u64,
    signals: SignalFd,
    /// Where keys come from, and how; absent where the session is only watched.
    keyboard: Option<(Channel, Keys)>,
    /// The changed modes of the terminal; dropping them restores what was there before.
    terminal: Option<Changed>,
    screen: Channel,
    /// Output that waits for the screen.
    queue: Outbox,
    /// What the program has set in the terminal.
    modes: TermModes,
    questions: QueryFilter,
    /// Looks for questions that the terminal is to answer, and when the last one came.
    asked: QueryFilter,
    asked_ns: Option<u64>,
    detach_keys: DetachKeys,
    detach_due_ns: Option<u64>,
    /// When the program is made to redraw by another size, or that size is put right again, and
    /// when the program was last made to.
    redraw_due_ns: Option<u64>,
    redrawn_ns: u64,
    end: Option<End>,
    /// What was typed while the last answers were waited for; the shell is to have it.
    typed_late: Vec<u8>,
}

fn now_ns() -> u64 {
    clock::now_ns()
}

/// Shows a session over a connection until one of the two ends, and puts the terminal right; `keys`
/// says how they are taken, where they are at all. Gives why it ended, and what was typed while the
/// last answers of the terminal were waited for. Gives an errno where the terminal cannot be used.
pub fn show(
    connection: Connection,
    session: u64,
    keys: Option<Keys>,
) -> Result<(End, Vec<u8>), i32> {
    let mut show = Show::new(connection, session, keys)?;
    let end = show.run();
    Ok((end, std::mem::take(&mut show.typed_late)))
}

impl Show {
    fn new(connection: Connection, session: u64, keys: Option<Keys>) -> Result<Self, i32> {
        let signals = SignalFd::on(&signals::AT_A_TERMINAL)?;
        let screen = Channel::open(1)?;
        let (keyboard, terminal) = match keys {
            Some(keys) => (Some((Channel::open(0)?, keys)), Some(Changed::new(0, keys)?)),
            None => (None, None),
        };
        Ok(Self {
            connection,
            session,
            signals,
            keyboard,
            terminal,
            screen,
            queue: Outbox::new(),
            modes: TermModes::new(),
            questions: QueryFilter::new(),
            asked: QueryFilter::new(),
            asked_ns: None,
            detach_keys: DetachKeys::new(),
            detach_due_ns: None,
            redraw_due_ns: None,
            redrawn_ns: 0,
            end: None,
            typed_late: Vec::new(),
        })
    }

    /// Runs until one of the two ends; the screen has everything then, and is put right.
    fn run(&mut self) -> End {
        loop {
            // Messages may have come with the answer to attaching.
            self.take_messages();
            self.run_due();
            self.write_screen();
            if let Some(end) = self.end.take() {
                self.leave();
                return end;
            }
            self.wait();
            self.take_signals();
            self.take_keys();
        }
    }

    /// Waits for anything to do, and moves the bytes that wait.
    fn wait(&mut self) {
        let due_ns = self.detach_due_ns.into_iter().chain(self.redraw_due_ns).min();
        let may_type = self.connection.unsent_bytes() < KEYS_QUEUE_BYTES;
        let may_read = self.queue.len() < TERMINAL_QUEUE_BYTES;
        let keyboard = self.keyboard.as_ref().and_then(|(channel, _)| channel.poll_fd());
        let screen = self.screen.poll_fd().unwrap_or(-1);
        let [messages, requests] = self.connection.watches(may_read);
        let mut all = [
            messages,
            requests,
            Watch::new(self.signals.fd(), true, false),
            Watch::new(keyboard.unwrap_or(-1), may_type, false),
            Watch::new(screen, false, !self.queue.is_empty()),
        ];
        // A screen that is a file is always ready, and messages may have been read already.
        let ready =
            (screen < 0 && !self.queue.is_empty()) || (may_read && self.connection.has_message());
        poll::wait_for(&mut all, if ready { Some(0) } else { due_ns });
        self.connection.move_on(&all[..2]);
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            let lines = matches!(self.keyboard, Some((_, Keys::Lines)));
            match signal {
                signals::SIGWINCH => self.send_size(0),
                signals::SIGCONT => {
                    if let Some(terminal) = &self.terminal {
                        terminal.again();
                    }
                    // Another program has had the screen meanwhile.
                    self.redraw_due_ns = Some(now_ns());
                }
                // Where Ctrl-C is no key of the program's, it ends the watching and nothing else.
                signals::SIGINT if lines || self.keyboard.is_none() => {
                    self.end = Some(End::Detached);
                }
                signal => self.end = Some(End::Signal(signal)),
            }
        }
    }

    /// Tells the session the size of our terminal, with `less` rows taken off.
    fn send_size(&mut self, less: u16) {
        if !matches!(self.keyboard, Some((_, Keys::Raw))) {
            return;
        }
        if let Some(size) = pty::size_of(0) {
            let rows = size.rows.saturating_sub(less);
            let params = json!({"session_id": self.session, "cols": size.cols, "rows": rows});
            self.connection.send("resize_session", &params);
        }
    }

    fn take_keys(&mut self) {
        if self.connection.unsent_bytes() >= KEYS_QUEUE_BYTES {
            return;
        }
        let Some((keyboard, keys)) = &mut self.keyboard else { return };
        let mut buffer = [0; KEYS_READ_BYTES];
        let typed = match keyboard.read(&mut buffer) {
            Io::Moved(bytes) => &buffer[..bytes],
            Io::WouldBlock => return,
            // Ctrl-D at the start of a line. (That the terminal is gone is told by SIGHUP too.)
            Io::Ended if *keys == Keys::Lines => return self.type_eof(),
            Io::Ended | Io::HungUp | Io::Failed(_) => return self.end = Some(End::Detached),
        };
        if *keys == Keys::Lines {
            // A line that ends without its newline was ended by Ctrl-D.
            match typed.strip_suffix(&[CTRL_BACKSLASH]) {
                Some(before) => {
                    let before = before.to_vec();
                    self.type_in(&before);
                    self.end = Some(End::Detached);
                }
                None => self.type_in(typed),
            }
            return;
        }
        match self.detach_keys.typed(typed) {
            Typed::Input(input) => self.type_in(&input),
            Typed::Detach(input) => {
                self.type_in(&input);
                self.end = Some(End::Detached);
            }
        }
        let waits = self.detach_keys.is_waiting();
        self.detach_due_ns = waits.then(|| now_ns() + DETACH_KEY_WAIT_MS * NS_PER_MS);
    }

    fn type_in(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let params = json!({"session_id": self.session, "data_b64": STANDARD.encode(bytes)});
            self.connection.send("attach_input", &params);
        }
    }

    fn type_eof(&mut self) {
        let params = json!({"session_id": self.session, "data_b64": "", "eof": true});
        self.connection.send("attach_input", &params);
        self.say("[end of input sent; Ctrl-C detaches]");
    }

    /// A line of ours on the screen.
    fn say(&mut self, text: &str) {
        self.queue.push(format!("\r\n{text}\r\n").as_bytes());
    }

    fn take_messages(&mut self) {
        while self.end.is_none()
            && self.queue.len() < TERMINAL_QUEUE_BYTES
            && let Some(message) = self.connection.next_message()
        {
            match message {
                Message::Note(method, params) => self.take_note(&method, &params),
                Message::Reply(_, Err(error)) => self.take_error(&error),
                Message::Reply(_, Ok(_)) => {}
                Message::Refusal(error) => self.end = Some(End::Lost(message_of(&error))),
            }
        }
        if self.end.is_none() && self.connection.is_over() {
            self.end = Some(End::Lost("execd is gone, and the session with it".to_owned()));
        }
    }

    fn take_error(&mut self, error: &Value) {
        // The end of the session is told by attach_ended, with the exit status.
        match error["data"]["reason"].as_str() {
            Some("session_exited" | "unknown_session" | "shutting_down") => {}
            Some("stdin_backlog_full") => self.queue.push(b"\x07"),
            _ => self.say(&format!("[execd: {}]", message_of(error))),
        }
    }

    fn take_note(&mut self, method: &str, params: &Value) {
        if params["session_id"] != self.session {
            return;
        }
        match method {
            "attach_output" => self.take_output(params),
            "attach_ended" => self.end = Some(how_it_ended(params)),
            _ => {}
        }
    }

    fn take_output(&mut self, params: &Value) {
        if let Some(dropped) = params["dropped_bytes"].as_u64() {
            let mut rest = Vec::new();
            self.questions.flush(&mut rest);
            self.queue.push(&rest);
            self.say(&format!("[execd: {dropped} bytes of output were not shown: too slow]"));
            let due_ns = self.redrawn_ns + REDRAW_PAUSE_MS * NS_PER_MS;
            self.redraw_due_ns = self.modes.alternate_screen().then_some(due_ns.max(now_ns()));
        }
        let data = params["data_b64"].as_str().unwrap_or_default();
        let Ok(data) = STANDARD.decode(data) else { return };
        let mut shown = Vec::new();
        if params["answer"] == false || self.keyboard.is_none() {
            self.questions.pass(&data, &mut shown);
        } else {
            self.questions.flush(&mut shown);
            shown.extend_from_slice(&data);
            let before = self.asked.count();
            self.asked.pass(&data, &mut Vec::new());
            if self.asked.count() > before {
                self.asked_ns = Some(now_ns());
            }
        }
        self.modes.feed(&shown);
        self.queue.push(&shown);
    }

    fn run_due(&mut self) {
        let now_ns = now_ns();
        if self.detach_due_ns.is_some_and(|due| due <= now_ns) {
            self.detach_due_ns = None;
            let held = self.detach_keys.give_up();
            self.type_in(held);
        }
        if self.redraw_due_ns.is_some_and(|due| due <= now_ns) {
            // After a gap the screen does not show what the program has drawn: another size for a
            // moment makes the program draw it anew.
            let began = self.redrawn_ns + JIGGLE_MS * NS_PER_MS;
            if began <= now_ns && now_ns < began + JIGGLE_MS * NS_PER_MS {
                self.send_size(0);
                self.redraw_due_ns = None;
            } else {
                self.send_size(1);
                self.redrawn_ns = now_ns;
                self.redraw_due_ns = Some(now_ns + JIGGLE_MS * NS_PER_MS);
            }
        }
    }

    fn write_screen(&mut self) {
        while !self.queue.is_empty() {
            match self.screen.write(self.queue.front()) {
                Io::Moved(bytes) => self.queue.consume(bytes),
                Io::WouldBlock => return,
                Io::Ended | Io::HungUp | Io::Failed(_) => {
                    self.queue.clear();
                    self.end.get_or_insert(End::Detached);
                }
            }
        }
    }

    /// The last output goes out, as far as the terminal takes it, and what the program had set
    /// in it is taken back.
    fn leave(&mut self) {
        let mut rest = Vec::new();
        self.questions.flush(&mut rest);
        self.queue.push(&rest);
        if self.screen.is_terminal() {
            self.queue.push(&self.modes.change_to(&TermModes::new()));
            self.queue.push(b"\x1b[0m");
        }
        let due_ns = now_ns() + TERMINAL_FLUSH_MS * NS_PER_MS;
        self.write_screen();
        while !self.queue.is_empty() && now_ns() < due_ns {
            let screen = self.screen.poll_fd().unwrap_or(-1);
            poll::wait_for(&mut [Watch::new(screen, false, true)], Some(due_ns));
            self.write_screen();
        }
        let params = json!({"session_id": self.session});
        self.connection.send("detach_session", &params);
        self.typed_late = typed_in(&self.take_last_answers());
    }

    /// A question that the terminal was shown a moment ago may be answered now, when the program
    /// that asked is not there any more: the shell would take the answer for keys. Gives all that
    /// came until the last answer had.
    fn take_last_answers(&mut self) -> Vec<u8> {
        let begin_ns = now_ns();
        let lately = |asked: u64| begin_ns < asked + TERMINAL_ASKED_MS * NS_PER_MS;
        let raw = matches!(self.keyboard, Some((_, Keys::Raw)));
        let mut came = Vec::new();
        if !raw || !self.asked_ns.is_some_and(lately) {
            return came;
        }
        // A terminal answers in order: once our question is answered, the others' answers are
        // there, or close behind.
        self.queue.push(LAST_QUESTION);
        self.write_screen();
        let Some((keyboard, _)) = &mut self.keyboard else { return came };
        let mut due_ns = begin_ns + TERMINAL_LAST_ANSWER_MS * NS_PER_MS;
        while now_ns() < due_ns {
            let mut all = [Watch::new(keyboard.poll_fd().unwrap_or(-1), true, false)];
            poll::wait_for(&mut all, Some(due_ns));
            let mut buffer = [0; KEYS_READ_BYTES];
            match keyboard.read(&mut buffer) {
                Io::Moved(bytes) => {
                    // An answer may come in pieces.
                    let from = came.len().saturating_sub(LAST_ANSWER.len() - 1);
                    came.extend_from_slice(&buffer[..bytes]);
                    let answered = memchr::memmem::find(&came[from..], LAST_ANSWER).is_some();
                    if answered || came.len() > KEYS_QUEUE_BYTES {
                        due_ns = due_ns.min(now_ns() + TERMINAL_ANSWER_MS * NS_PER_MS);
                    }
                }
                Io::WouldBlock => {}
                Io::Ended | Io::HungUp | Io::Failed(_) => break,
            }
        }
        came
    }
}

/// The end of a session from its notification.
fn how_it_ended(params: &Value) -> End {
    match (params["exit_code"].as_i64(), params["signal"].as_str()) {
        (Some(code), _) => {
            End::Ended(format!("exit code {code}"), i32::try_from(code).unwrap_or(1))
        }
        (None, Some(signal)) => {
            End::Ended(signal.to_owned(), EXIT_SIGNAL + parse_signal(signal).unwrap_or(0))
        }
        (None, None) => End::Ended("its output goes on elsewhere".to_owned(), 0),
    }
}

impl End {
    /// Tells the person who watched this session how the session ended, unless the person knows.
    pub fn tell(&self, session: u64) {
        match self {
            Self::Ended(how, _) => complain(&format!("[session {session} has ended: {how}]")),
            Self::Lost(reason) => complain(&format!("execd: {reason}")),
            Self::Detached | Self::Signal(_) => {}
        }
    }

    /// The exit status for this end.
    pub fn status(&self) -> i32 {
        match self {
            Self::Detached => 0,
            Self::Ended(_, status) => *status,
            Self::Lost(_) => EXIT_FAILED,
            Self::Signal(signal) => EXIT_SIGNAL + signal,
        }
    }
}
