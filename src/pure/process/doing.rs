//! What the processes of a session are at, decided from what the kernel says of each of their
//! threads: whether one waits for input of the client's and of which kind, and whether nothing but
//! such input can move the session on (waits.md, State; waits.md, Impossible).

use std::hash::{DefaultHasher, Hash, Hasher};

/// What a descriptor is that a thread waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// The session's terminal.
    Terminal,
    /// The pipe that execd writes the session's input to.
    Stdin,
    /// Only the session itself can make it ready: a pipe without a name that is not execd's, an
    /// eventfd, a signalfd, the pidfd of a member. Which pipe it is, where it is one.
    Inside(Option<u64>),
    /// Anything else: somebody or something outside may make it ready at any time.
    Other,
}

impl On {
    fn is_input(self) -> bool {
        matches!(self, Self::Terminal | Self::Stdin)
    }
}

/// A system call that a thread is in, as far as it matters here. What it waits on comes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// It reads a descriptor.
    Read,
    /// It writes to a descriptor.
    Write,
    /// It waits for one of several descriptors; `timed`: or for a time.
    Poll {
        /// See above.
        timed: bool,
    },
    /// It waits for a child, a lock of its own process's or a signal, without a timeout.
    Member,
    /// It runs, sleeps for a time, or waits for something else.
    Other,
}

/// A thread as a look has found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The thread's id.
    pub tid: i32,
    /// Its call.
    pub call: Call,
    /// The descriptors that the call waits on. Empty where they could not be told.
    pub on: Vec<On>,
    /// The kernel's line about the call: the same call again has the same.
    pub line: u64,
    /// The CPU time that the thread has used; known of those that wait for input.
    pub cpu_ns: u64,
}

/// A process as a look has found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The process's id.
    pub pid: i32,
    /// Its name (comm).
    pub name: String,
    /// Whether it is one of those whose waiting counts: in the foreground of the terminal, or any
    /// member where stdin is a pipe.
    pub counts: bool,
    /// It was stopped by a signal, or by whoever traces it.
    pub stopped: bool,
    /// What it is at must not be looked at: it is another user's.
    pub hidden: bool,
    /// A timer is armed in it, or whether one is can't be told.
    pub timer: bool,
    /// The CPU time that all its threads have used.
    pub cpu_ns: u64,
    /// Its threads; none where nothing of them matters.
    pub threads: Vec<Thread>,
}

/// The modes of a terminal, as far as they tell what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modes {
    /// Lines are put together by the terminal.
    pub canonical: bool,
    /// What is typed is shown.
    pub echo: bool,
    /// A read that gets nothing ends after a time (VTIME without VMIN, termios(3)).
    pub read_is_timed: bool,
}

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A line.
    Line,
    /// A line that is not shown.
    Password,
    /// A key.
    Key,
}

impl Input {
    /// The word of `state`.
    pub fn state(self) -> &'static str {
        match self {
            Self::Line => "waiting_for_line",
            Self::Password => "waiting_for_password",
            Self::Key => "waiting_for_key",
        }
    }

    /// What is waited for, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Line => "a line",
            Self::Password => "a password",
            Self::Key => "a key",
        }
    }
}

/// Who waits for input. Two looks agree where these are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// What is waited for.
    pub input: Input,
    /// The process.
    pub pid: i32,
    /// The process's name.
    pub name: String,
    /// Whether it waits on the terminal, else on the stdin pipe.
    pub terminal: bool,
    /// The kind is told by the last line of output alone.
    pub by_text: bool,
    /// The thread, its call and the CPU time that it has used.
    mark: (i32, u64, u64),
}

/// What a look says of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Who waits for input.
    pub waiter: Option<Waiter>,
    /// Everybody who counts was stopped.
    pub stopped: bool,
    /// Nothing but input can move the session on.
    pub closed: bool,
    /// The same for two looks between which nothing has moved.
    pub mark: u64,
}

/// Programs that pass keys on to another machine or container: only the far end knows what it
/// waits for.
const FAR: [&str; 6] = ["ssh", "docker", "kubectl", "podman", "mosh-client", "mosh"];

/// Decides. `modes`: of the terminal, where the session has one that can be asked. `complete`:
/// `all` are all processes of the session, and nobody else can reach into it. `last_line`: the
/// unfinished last line of the output.
pub fn decide(all: &[Process], modes: Option<Modes>, complete: bool, last_line: &[u8]) -> Found {
    let waiter = waiter(all, modes, last_line);
    let mut counted = all.iter().filter(|one| one.counts).peekable();
    let stopped = counted.peek().is_some() && counted.all(|one| one.stopped);
    let waits = all.iter().any(|one| !one.stopped && one.threads.iter().any(Thread::is_fed));
    let reads = |one: &Process| !one.stopped && one.threads.iter().any(Thread::reads_terminal);
    let timed = modes.is_some_and(|modes| modes.read_is_timed) && all.iter().any(reads);
    let blocked = !timed && all.iter().all(Process::is_blocked);
    let closed = complete && waits && waiter.is_some() && blocked;
    Found { waiter, stopped: stopped && !waits, closed, mark: mark(all, modes) }
}

fn waiter(all: &[Process], modes: Option<Modes>, last_line: &[u8]) -> Option<Waiter> {
    let input = match modes {
        None | Some(Modes { canonical: true, echo: true, .. }) => Input::Line,
        Some(Modes { canonical: true, echo: false, .. }) => Input::Password,
        Some(Modes { canonical: false, .. }) => Input::Key,
    };
    let counted = || all.iter().filter(|one| one.counts && !one.stopped);
    let far = counted().find(|one| FAR.contains(&one.name.as_str()));
    if let (Input::Key, Some(far)) = (input, far) {
        // Whether the far end waits can't be told but by what it has written.
        return asks_for_password(last_line).then(|| {
            let mark = (far.pid, 0, 0);
            far.waiter(Input::Password, true, true, mark)
        });
    }
    let reads = |thread: &&Thread| thread.call == Call::Read && thread.is_fed();
    let polls = |thread: &&Thread| match thread.call {
        Call::Poll { .. } if thread.is_blocked() => thread.is_fed(),
        Call::Poll { .. } => input == Input::Key && thread.on.contains(&On::Terminal),
        _ => false,
    };
    let by = |fits: &dyn Fn(&&Thread) -> bool| {
        counted().find_map(|one| Some((one, one.threads.iter().find(fits)?)))
    };
    if let Some((one, thread)) = by(&reads).or_else(|| by(&polls)) {
        let terminal = thread.on.contains(&On::Terminal);
        // A stdin pipe is read by lines whatever the modes of a terminal are.
        let input = if terminal { input } else { Input::Line };
        return Some(one.waiter(input, terminal, false, thread.mark()));
    }
    // A program that asks for a password may run as another user: the terminal tells it alone.
    let hidden = counted().find(|one| one.hidden).filter(|_| input == Input::Password)?;
    Some(hidden.waiter(input, true, false, (hidden.pid, 0, hidden.cpu_ns)))
}

/// Whether a line ends as one does that asks for a password: `Password:`, `Enter passphrase for
/// key '/x':`, each with blanks behind it.
pub fn asks_for_password(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(line) = line.strip_suffix(b":") else { return false };
    let is_in = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
    line.ends_with(b"assword") || is_in(b"assphrase")
}

impl Thread {
    /// One in a call of which no more is known.
    pub fn new(tid: i32, call: Call) -> Self {
        Self { tid, call, on: Vec::new(), line: 0, cpu_ns: 0 }
    }

    /// Whether its call waits on input of the client's, perhaps among other things.
    fn is_fed(&self) -> bool {
        matches!(self.call, Call::Read | Call::Poll { .. })
            && self.on.iter().any(|on| on.is_input())
    }

    fn reads_terminal(&self) -> bool {
        self.call == Call::Read && self.on.contains(&On::Terminal)
    }

    /// Whether nothing can move it on but the client's input or the session itself.
    fn is_blocked(&self) -> bool {
        let closed = |on: &On| matches!(on, On::Terminal | On::Stdin | On::Inside(_));
        match self.call {
            Call::Read => !self.on.is_empty() && self.on.iter().all(closed),
            // What it writes to the client, the client takes: only a pipe inside may stay full.
            Call::Write => matches!(self.on[..], [On::Inside(_)]),
            Call::Poll { timed } => !timed && !self.on.is_empty() && self.on.iter().all(closed),
            Call::Member => true,
            Call::Other => false,
        }
    }

    fn mark(&self) -> (i32, u64, u64) {
        (self.tid, self.line, self.cpu_ns)
    }
}

impl Process {
    /// Whether nothing can move it on but the client's input or the session itself.
    pub fn is_blocked(&self) -> bool {
        let all = || !self.threads.is_empty() && self.threads.iter().all(Thread::is_blocked);
        self.stopped || (!self.hidden && !self.timer && all())
    }

    /// The pipes inside the session that its threads wait on.
    pub fn pipes(&self) -> impl Iterator<Item = u64> {
        let on = self.threads.iter().flat_map(|thread| thread.on.iter());
        on.filter_map(|on| if let On::Inside(pipe) = on { *pipe } else { None })
    }

    fn waiter(&self, input: Input, terminal: bool, by_text: bool, mark: (i32, u64, u64)) -> Waiter {
        Waiter { input, pid: self.pid, name: self.name.clone(), terminal, by_text, mark }
    }
}

fn mark(all: &[Process], modes: Option<Modes>) -> u64 {
    let mut hasher = DefaultHasher::new();
    modes.hash(&mut hasher);
    for one in all {
        (one.pid, one.stopped, one.cpu_ns).hash(&mut hasher);
        for thread in &one.threads {
            (thread.tid, thread.call, thread.line).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
#[path = "tests_doing.rs"]
mod tests;
