//! execd in containers (docs/machines.md): Podman's, Docker's and systemd-nspawn's, each on this
//! machine, with an engine, directories and cgroups of its own. No image is needed: the root of a
//! container is empty directories, with the machine's /usr and the tested execd mounted read-only.
//! Where a program is not installed, or no container starts, a test is left out and says why, on CI
//! too: its packages may not be had there, and a machine may forbid it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::outside::{
    comm, end_of, is_root, left_out, marked, output_of, pids, status_field,
};
use crate::common::{AT_ONCE, Execd, PAUSE, Setup, eventually, output, send_signal, session_of};
use serde_json::json;
use tempfile::TempDir;

use crate::common::EXECD;
/// Where a container has it.
const INSIDE: &str = "/opt/execd";
/// What everything has in its environment that a test runs in its container.
const MARK: &str = "BOX_OF_A_TEST";
const FLOOD_BYTES: u64 = 64 << 20;
/// Shorter than any wait of a test, and long enough for a machine that is busy.
const LEASE: [&str; 2] = ["--lease", "5s"];
/// How long a container runs by itself: longer than nextest lets a test (ten minutes), and not for
/// ever where that one was ended from outside.
const BOX_SECONDS: u64 = 900;
const CAP_SYS_ADMIN: u32 = 21;
/// Engines raise the limit of open files as far as the kernel knows one, which root of a machine
/// may not do that is a guest itself.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Engine {
    Podman,
    Docker,
    Nspawn,
}

use Engine::{Docker, Nspawn, Podman};

/// A container, and what is needed to run something in it.
struct Far {
    engine: Engine,
    dir: TempDir,
    /// The engine's own command line, before what it is to do.
    program: Vec<String>,
    daemon: Option<Child>,
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Whether all of these are there; says so where one is not.
fn installed(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let missing = |program: &&&str| !dirs.iter().any(|dir| dir.join(program).is_file());
    if let Some(program) = programs.iter().find(missing) {
        left_out(&format!("{program} is not installed"));
        return false;
    }
    true
}

/// Whether we have CAP_SYS_ADMIN: without it Podman takes even root for somebody else, and leaves a
/// process behind.
fn may_mount() -> bool {
    let own = i32::try_from(std::process::id()).expect("a pid");
    let has = status_field(own, "CapEff").and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    has.is_some_and(|bits| bits >> CAP_SYS_ADMIN & 1 == 1)
}

/// The root of a container: programs come from the machine's /usr.
fn make_root(root: &Path, name: &str) {
    for inside in ["usr", "etc", "proc", "sys", "dev", "tmp", "run", "root", "var/tmp", "opt"] {
        std::fs::create_dir_all(root.join(inside)).expect("a directory");
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        if let Ok(target) = std::fs::read_link(Path::new("/").join(link)) {
            std::os::unix::fs::symlink(target, root.join(link)).expect("a link");
        }
    }
    std::fs::write(root.join("etc/box"), format!("{name}\n")).expect("a file");
}

impl Far {
    /// A container that runs, or can be run; `None`, and a word why, where there is none.
    fn start(engine: Engine) -> Option<Self> {
        let programs: &[&str] = match engine {
            Podman => &["podman", "unshare"],
            Docker => &["dockerd", "docker", "containerd", "tar", "unshare"],
            Nspawn => &["systemd-nspawn"],
        };
        if !is_root() || !may_mount() {
            left_out(&format!("{engine:?}: containers are started by root here, who may mount"));
            return None;
        }
        if !installed(programs) {
            return None;
        }
        let dir = tempfile::Builder::new().prefix("execd-box-").tempdir().expect("a directory");
        let mut far = Self { engine, dir, program: Vec::new(), daemon: None };
        make_root(&far.path("root"), &far.name());
        let started = match engine {
            Podman => far.start_podman(),
            Docker => far.start_docker(),
            Nspawn => far.try_nspawn(),
        };
        if let Err(why) = started {
            left_out(&format!("{engine:?} starts no container here: {why}"));
            return None;
        }
        Some(far)
    }

    /// Podman with each runtime that may be there: crun takes no machine with both versions of
    /// cgroups. What it mounts goes with its processes, also where a test is ended from outside.
    fn start_podman(&mut self) -> Result<(), String> {
        let at = self.dir.path().display();
        let own = format!(
            "podman --root {at}/store --runroot {at}/run --tmpdir {at}/tmp --storage-driver vfs \
             --cgroup-manager cgroupfs --events-backend none"
        );
        std::fs::write(self.path("settings"), "[engine]\nlock_type = \"file\"\n").expect("a file");
        let (alone, mut said) = ("unshare --mount env", String::new());
        for runtime in ["", " --runtime runc"] {
            // Locks in a file: those in memory are one for all of Podman's on the machine.
            self.program = words(&format!("{alone} CONTAINERS_CONF={at}/settings {own}{runtime}"));
            match self.run_box(&["--rootfs".to_owned(), self.word("root")]) {
                Ok(()) => return Ok(()),
                Err(why) => said = why,
            }
            self.engine_does(&["rm", "--force", "--ignore", "box"]);
        }
        Err(said)
    }

    /// Docker's daemon, in namespaces of its own: with it goes what it mounts and sets, and what it
    /// writes into /etc and /run.
    fn start_docker(&mut self) -> Result<(), String> {
        let at = self.dir.path().display();
        self.program = words(&format!("docker --host unix://{at}/socket"));
        for layer in ["upper", "work"] {
            std::fs::create_dir(self.path(layer)).expect("a directory");
        }
        let layers = format!("lowerdir=/etc,upperdir={at}/upper,workdir={at}/work");
        let alone = format!(
            "mount -t overlay -o {layers} overlay /etc && mount -t tmpfs tmpfs /run && exec \"$@\""
        );
        let daemon = format!(
            "dockerd --host unix://{at}/socket --data-root {at}/store \
             --exec-root {at}/run --pidfile {at}/pid --storage-driver vfs --bridge none \
             --iptables=false --ip6tables=false --ip-forward=false --cgroup-parent /{}",
            self.name()
        );
        let log = File::create(self.path("log")).expect("a file");
        let daemon = Command::new("unshare")
            .args(["--mount", "--net", "sh", "-c", &alone, "sh"])
            .args(daemon.split_ascii_whitespace())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("unshare starts");
        let daemon = self.daemon.insert(daemon);
        let mut ended = false;
        let listens = self.dir.path().join("log");
        eventually("Docker's daemon listens", || {
            ended = daemon.try_wait().expect("our child").is_some();
            let said = std::fs::read_to_string(&listens).unwrap_or_default();
            ended || said.contains("API listen on")
        });
        if ended {
            return Err(std::fs::read_to_string(&listens).unwrap_or_default());
        }
        let image = self.word("image");
        let tar = ["-C", &self.word("root"), "-cf", &image, "."].map(str::to_owned);
        succeeded(output_of(Command::new("tar").args(tar)))?;
        succeeded(self.engine_does(&["import", &image, "box"]))?;
        self.run_box(&["box".to_owned()])
    }

    /// systemd-nspawn has a container for each command.
    fn try_nspawn(&mut self) -> Result<(), String> {
        let (name, root) = (self.name(), self.word("root"));
        self.program = words(&format!(
            "systemd-nspawn --quiet --register=no --keep-unit --private-network --resolv-conf=off \
             --timezone=off --link-journal=no --machine={name} -D {root} --bind-ro=/usr \
             --bind-ro={EXECD}:{INSIDE} --setenv={MARK}={name} --as-pid2 --pipe"
        ));
        succeeded(self.run(&[INSIDE, "--version"]))
    }

    /// Starts the container, in which nothing but a sleep runs, and tries it.
    fn run_box(&self, of: &[String]) -> Result<(), String> {
        let mut args = words("run --detach --name box --network none");
        if self.engine == Podman {
            args.push(format!("--cgroup-parent=/{}", self.name()));
        }
        args.extend(LIMITS.map(str::to_owned));
        args.extend(["--volume".to_owned(), "/usr:/usr:ro".to_owned()]);
        args.extend(["--volume".to_owned(), format!("{EXECD}:{INSIDE}:ro")]);
        args.extend_from_slice(of);
        args.extend(words("sleep"));
        args.push(BOX_SECONDS.to_string());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        succeeded(self.engine_does(&args))?;
        succeeded(self.run(&[INSIDE, "--version"]))
    }

    fn name(&self) -> String {
        self.dir.path().file_name().expect("a name").to_string_lossy().into_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// The engine does something and ends.
    fn engine_does(&self, args: &[&str]) -> Output {
        output_of(Command::new(&self.program[0]).args(&self.program[1..]).args(args))
    }

    fn words(&self) -> Vec<String> {
        let mut all = self.program.clone();
        if self.engine != Nspawn {
            all.extend(["exec".to_owned(), "-i".to_owned(), "--env".to_owned()]);
            all.extend([format!("{MARK}={}", self.name()), "box".to_owned()]);
        }
        all
    }

    fn run(&self, command: &[&str]) -> Output {
        let words = self.words();
        output_of(Command::new(&words[0]).args(&words[1..]).args(command))
    }

    fn execd(&self, flags: &[&str]) -> Execd {
        let words = self.words();
        let words: Vec<&str> = words.iter().map(String::as_str).chain([INSIDE]).collect();
        Setup::of(&words, flags).start()
    }

    /// Stops the container: with systemd-nspawn, whose container is that of one command, by what
    /// it does on SIGTERM.
    fn stop(&self, execd: &Execd) {
        if self.engine == Nspawn {
            return execd.signal(libc::SIGTERM);
        }
        let done = self.engine_does(&["stop", "--time", "0", "box"]);
        assert!(done.status.success(), "{done:?}");
    }

    /// What a test runs there: pids and names.
    fn running(&self) -> Vec<(i32, String)> {
        let all = marked(MARK, &self.name());
        all.into_iter().map(|pid| (pid, comm(pid))).collect()
    }

    /// Waits until nothing runs there any more; gives how long that took.
    fn until_nothing_runs(&self) -> Duration {
        let since = Instant::now();
        eventually("nothing runs there any more", || self.running().is_empty());
        since.elapsed()
    }

    /// A session there whose processes ignore what ends a session gently.
    fn start_stubborn(&self, execd: &mut Execd) {
        execd.open_now(&json!({"cmd": "trap '' HUP TERM; sleep 300 & sleep 300"}));
        eventually("both run", || {
            self.running().iter().filter(|(_, name)| name == "sleep").count() == 2
        });
    }

    /// The cgroups of its own, in each hierarchy, that the engine leaves empty.
    fn cgroups(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let tops = all.map(|one| one.path()).chain(["/sys/fs/cgroup".into()]);
        tops.map(|top| top.join(self.name())).filter(|own| own.is_dir()).collect()
    }

    /// Whether a process of the engine still works on the container: what Podman starts to clean up
    /// behind it makes cgroups once more.
    fn is_served(&self) -> bool {
        let name = self.name();
        pids().into_iter().any(|pid| {
            let line = crate::common::outside::cmdline(pid);
            String::from_utf8_lossy(&line).contains(&name)
        })
    }

    /// Removes these when nobody works on the container any more, and the directory of a
    /// systemd-nspawn that was killed.
    fn remove_leavings(&self) {
        let _ = std::fs::remove_dir(Path::new("/run/systemd/nspawn/propagate").join(self.name()));
        let until = Instant::now() + AT_ONCE;
        while (self.is_served() || !self.cgroups().is_empty()) && Instant::now() < until {
            for own in self.cgroups() {
                let inner = std::fs::read_dir(&own).into_iter().flatten().flatten();
                for dir in inner.map(|one| one.path()).filter(|path| path.is_dir()).chain([own]) {
                    let _ = std::fs::remove_dir(dir);
                }
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Far {
    /// Nothing outlives the test, and that is looked at where it passed.
    fn drop(&mut self) {
        let left = self.running();
        for (pid, _) in &left {
            send_signal(*pid, libc::SIGKILL);
        }
        if self.engine != Nspawn && !self.program.is_empty() {
            self.engine_does(&["rm", "--force", "box"]);
        }
        if let Some(daemon) = &mut self.daemon {
            send_signal(i32::try_from(daemon.id()).expect("a pid"), libc::SIGTERM);
            end_of(daemon);
        }
        self.remove_leavings();
        assert!(left.is_empty() || thread::panicking(), "left behind there: {left:?}");
    }
}

fn succeeded(done: Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    done.status.success().then_some(()).ok_or(said)
}

fn carries_a_client_and_leaves_nothing(engine: Engine) {
    if let Some(far) = Far::start(engine) {
        carries_a_client(&far);
        leaves_nothing(&far);
    }
}

/// A client that knows nothing of containers: commands, their logs, keys, and a flood.
fn carries_a_client(far: &Far) {
    let mut execd = far.execd(&[]);
    let result = execd.run("cat /etc/box");
    assert_eq!(output(&result), format!("{}\n", far.name()));
    let log = result["log_path"].as_str().expect("a log");
    assert!(log.starts_with("/tmp/pi-execd-0/") && !Path::new(log).exists(), "{log}");
    let read = execd.result("read_output", json!({"session_id": 1}));
    assert!(read.to_string().contains(&far.name()), "{read}");

    // Ctrl-C in the terminal of a session there.
    let cmd = "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done";
    let params = json!({"cmd": cmd, "tty": true, "until": {"text": "up"}, "yield_time_ms": 30_000});
    let session = session_of(&execd.result("exec_command", params));
    let ended =
        execd.write(json!({"session_id": session, "chars": "\u{3}", "yield_time_ms": 30_000}));
    assert!(output(&ended).contains("caught"), "{ended}");
    assert_eq!(ended["exit_code"], 7, "{ended}");

    // A flood in a session stays there, and questions are answered beside it.
    let cmd = format!("echo up; head -c {FLOOD_BYTES} /dev/zero | tr '\\0' x");
    let flood = execd.start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 600_000}));
    execd.ping();
    assert_eq!(execd.result_of(flood)["output_bytes_total"], FLOOD_BYTES + 3);

    far.start_stubborn(&mut execd);
    let helpers = far.running().iter().filter(|(_, name)| name.starts_with("execd")).count();
    assert!(helpers > 2, "the guard and the writer of logs are counted: {:?}", far.running());
    execd.close_stdin();
    assert_eq!(execd.exit_code(), Some(0));
    far.until_nothing_runs();

    // The streams and the status of `execd run` are the command's.
    let said = far.run(&[INSIDE, "run", "-q", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((said.status.code(), &said.stdout[..]), (Some(3), &b"out\n"[..]));
    // systemd-nspawn adds words of its own.
    assert!(said.stderr.starts_with(b"err\n"), "{:?}", String::from_utf8_lossy(&said.stderr));
    far.until_nothing_runs();
}

/// The ways in which it ends there.
fn leaves_nothing(far: &Far) {
    // The engine's client is killed.
    let mut execd = far.execd(&LEASE);
    far.start_stubborn(&mut execd);
    execd.signal(libc::SIGKILL);
    let took = far.until_nothing_runs();
    assert!(took < AT_ONCE, "{took:?}");

    // It stands still, and nothing tells that it does.
    let mut execd = far.execd(&LEASE);
    far.start_stubborn(&mut execd);
    execd.signal(libc::SIGSTOP);
    let took = far.until_nothing_runs();
    execd.signal(libc::SIGKILL);
    assert!(took < AT_ONCE, "{took:?}");

    // The container is stopped: the client hears of the end.
    let mut execd = far.execd(&[]);
    far.start_stubborn(&mut execd);
    far.stop(&execd);
    far.until_nothing_runs();
    assert_ne!(execd.exit_code(), Some(0));
}

/// rule: machines.md, Containers: `podman exec -i`: commands, logs, keys and floods are the
///   container's; at the end of stdin all of it ends
/// rule: machines.md, Containers: A client that is killed or stands still ends execd and all that
///   it runs within the lease; a container that is stopped leaves nothing
#[test]
#[ignore = "needs engines for containers; make test-large"]
fn podman_carries_a_client_and_leaves_nothing() {
    carries_a_client_and_leaves_nothing(Podman);
}

/// rule: machines.md, Containers: `docker exec -i`: the same
#[test]
#[ignore = "needs engines for containers; make test-large"]
fn docker_carries_a_client_and_leaves_nothing() {
    carries_a_client_and_leaves_nothing(Docker);
}

/// rule: machines.md, Containers: `systemd-nspawn --pipe`: the same
#[test]
#[ignore = "needs engines for containers; make test-large"]
fn nspawn_carries_a_client_and_leaves_nothing() {
    carries_a_client_and_leaves_nothing(Nspawn);
}
