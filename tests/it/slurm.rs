//! `execd agent` under Slurm (docs/machines.md): the scripts of docs/examples/many on a cluster of
//! one node, which a test starts for itself, with daemons, keys and ports of its own. Where Slurm
//! is not installed the tests are left out, on CI too: its packages may not be had there.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::outside::output_of;
use crate::common::{PATIENCE, eventually, left_out, now, outside, send_signal};
use crate::scale_help::Batch;
use tempfile::TempDir;

/// What the tests need, from Debian's slurmctld, slurmd, slurm-client and munge, and jq.
const NEEDED: [&str; 7] = ["slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "jq"];
const TASKS: usize = 200;
/// Elements of an array that run at once: the node says that it has so many processors.
const AT_ONCE: usize = 8;
/// Where no cluster starts with this version the tests fail; with others they are left out.
const TESTED: &str = "slurm-wlm 22.05";
/// How often the daemons are started anew where somebody else has taken one of their ports.
const STARTS: usize = 3;
const LOOK: Duration = Duration::from_millis(300);
/// How long all tasks may take: they start some three thousand processes, on a machine that may
/// be busy.
const ALL_TASKS: Duration = Duration::from_secs(240);
/// What the daemons, and what runs a job's script, have in their environment.
const MARK: &str = "CLUSTER_OF_A_TEST";

/// What Slurm says of its version: `slurm-wlm 22.05.8`. Its clients would need settings for that.
fn version() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut ask = Command::new("slurmctld");
    let said = output_of(ask.arg("-V").env("PATH", format!("{path}:/usr/sbin"))).stdout;
    String::from_utf8_lossy(&said).trim().to_owned()
}

struct Cluster {
    dir: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// One whose node is idle; none where Slurm is not installed, which is said.
    fn start() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        dirs.push("/usr/sbin".into());
        let is_missing = |program: &&str| !dirs.iter().any(|dir| dir.join(program).is_file());
        if let Some(program) = NEEDED.into_iter().find(is_missing) {
            left_out(&format!("Slurm: {program} is not installed"));
            return None;
        }
        let version = version();
        let mut logs = String::new();
        for _ in 0..STARTS {
            match Self::try_to_start() {
                Ok(cluster) => return Some(cluster),
                Err(said) => logs = said,
            }
        }
        let why = format!("no cluster in {STARTS} starts of {version}:\n{logs}");
        assert!(!version.starts_with(TESTED), "{why}");
        left_out(&why);
        None
    }

    /// The same, or the daemons' logs when one of them ends at once.
    fn try_to_start() -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("execd-slurm-").tempdir().expect("a directory");
        let mut cluster = Self { dir, daemons: Vec::new() };
        // munged has a socket in it that everybody is to reach.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(cluster.dir.path(), mode).expect("its mode");
        for name in ["state", "spool"] {
            std::fs::create_dir(cluster.at(name)).expect("a directory");
        }
        std::fs::write(cluster.at("slurm.conf"), cluster.settings()).expect("its settings");
        let mut key = [0; 128];
        std::io::Read::read_exact(&mut File::open("/dev/urandom").expect("it is there"), &mut key)
            .expect("random bytes");
        std::fs::write(cluster.at("key"), key).expect("a key");
        let mode = std::fs::Permissions::from_mode(0o400);
        std::fs::set_permissions(cluster.at("key"), mode).expect("its mode");
        let munge: Vec<String> = ["key", "socket", "pid", "seed"]
            .iter()
            .map(|what| format!("--{what}-file={}/{what}", cluster.dir.path().display()))
            .map(|word| word.replace("--socket-file", "--socket"))
            .collect();
        let munge: Vec<&str> = munge.iter().map(String::as_str).collect();
        cluster.daemon(&[&["munged", "--foreground", "--force"], &munge[..]].concat());
        eventually("munged listens", || cluster.at("socket").exists());
        cluster.daemon(&["slurmctld", "-D", "-i"]);
        cluster.daemon(&["slurmd", "-D"]);
        if cluster.until_idle() { Ok(cluster) } else { Err(cluster.logs()) }
    }

    /// Everything on the loopback interface, and no cgroups: what a machine of tests may lack. A
    /// requeued job waits 5 s here, the least that Slurm takes, and not two minutes.
    fn settings(&self) -> String {
        let dir = self.dir.path().display();
        // The kernel gives both away again when they are closed, to us most likely.
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [control, node] = sockets.map(|one| one.local_addr().expect("its address").port());
        let said = |words: &[&str]| {
            let output = output_of(Command::new(words[0]).args(&words[1..]));
            String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
        };
        let (host, user) = (said(&["uname", "-n"]), said(&["id", "-un"]));
        let host = host.split('.').next().unwrap_or_default();
        format!(
            "ClusterName=test\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmUser={user}\n\
             SlurmdUser={user}\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={dir}/socket,cred_expire=5\n\
             CredType=cred/munge\n\
             CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
             SlurmctldPort={control}\n\
             SlurmdPort={node}\n\
             StateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/spool\n\
             SlurmctldPidFile={dir}/slurmctld.pid\n\
             SlurmdPidFile={dir}/slurmd.pid\n\
             KillWait=2\n\
             SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0\n\
             MailProg=/bin/true\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\n\
             SwitchType=switch/none\n\
             MpiDefault=none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\n\
             SlurmdParameters=config_overrides\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={AT_ONCE} State=UNKNOWN\n\
             PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP\n"
        )
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn daemon(&mut self, words: &[&str]) {
        let log = File::create(self.at(&format!("{}.log", words[0]))).expect("its log");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("PATH", format!("{path}:/usr/sbin"));
        command.env("SLURM_CONF", self.at("slurm.conf")).env(MARK, self.dir.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a copy")).stderr(log);
        self.daemons.push(command.spawn().expect("it starts"));
    }

    /// Waits until the node has room for jobs; false when a daemon ends before, or time does.
    fn until_idle(&mut self) -> bool {
        let begun = now();
        loop {
            if self.daemons.iter_mut().any(|it| it.try_wait().expect("a child").is_some()) {
                return false;
            }
            let mut ask = Command::new("sinfo");
            ask.args(["-h", "-o", "%T"]).env("SLURM_CONF", self.at("slurm.conf"));
            let asked = output_of(&mut ask);
            if asked.stdout.trim_ascii() == b"idle" {
                return true;
            }
            if begun.elapsed() >= PATIENCE {
                return false;
            }
            thread::sleep(LOOK);
        }
    }

    fn logs(&self) -> String {
        let text = |name: &str| std::fs::read_to_string(self.at(name)).unwrap_or_default();
        ["munged.log", "slurmctld.log", "slurmd.log"].map(text).join("\n")
    }

    fn run(&self, batch: &Batch, words: &[&str]) -> String {
        let mut command = batch.command(words);
        let done = output_of(command.env("SLURM_CONF", self.at("slurm.conf")));
        let err = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?}: {err}\n{}", self.logs());
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    /// Gives Slurm the tasks that have no result, as the document does; gives the arrays' numbers.
    fn submit(&self, batch: &Batch) -> Vec<String> {
        let said = self.run(batch, &["bash", "submit.sh"]);
        let number = |line: &str| line.strip_prefix("Submitted batch job ").map(str::to_owned);
        said.lines().map(|line| number(line).unwrap_or_else(|| panic!("{said}"))).collect()
    }

    /// Waits until no job is left.
    fn until_done(&self, batch: &Batch) {
        let begun = now();
        while !self.run(batch, &["squeue", "-h"]).is_empty() {
            assert!(begun.elapsed() < ALL_TASKS, "{}", self.run(batch, &["squeue"]));
            thread::sleep(LOOK);
        }
        batch.until_gone();
    }
}

/// The daemons end, and whatever of them is left when a test has failed.
impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            send_signal(i32::try_from(daemon.id()).expect("a pid"), 15);
        }
        for pid in outside::marked(MARK, &self.dir.path().to_string_lossy()) {
            send_signal(pid, 9);
        }
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
    }
}

/// What the tasks of the large array do: most of them succeed at once. The last one is requeued
/// too: its job has the number of the whole array.
fn word(n: usize) -> &'static str {
    match n {
        3 | 90 | TASKS => "once",
        4 => "always",
        5 | 91 => "crash",
        6 | 120 => "killed",
        7 | 150 => "lost",
        8 => "refused",
        _ => "plain",
    }
}

/// rule: scale.md, Slurm: 200 tasks as a job array: each result exactly once, what failed is tried
///   again as its error_kind says, and what was killed as a whole runs again with the list
#[test]
#[ignore = "needs Slurm; make test-large"]
fn two_hundred_tasks_are_two_hundred_results() {
    let Some(cluster) = Cluster::start() else { return };
    let batch = Batch::new((1..=TASKS).map(word).collect());
    assert_eq!(cluster.submit(&batch).len(), 1);
    cluster.until_done(&batch);
    // Two jobs were killed with all that ran in them, and left nothing. All the others are done.
    assert_eq!(batch.results().len(), TASKS - 2, "{}", cluster.logs());
    assert_eq!(batch.starts_of("lost"), [1, 1]);
    let before = batch.starts();
    assert_eq!(cluster.submit(&batch).len(), 1);
    cluster.until_done(&batch);
    batch.assert_done();
    assert_eq!(batch.starts() - before, 2, "what has a result does not run again");
    let starts: BTreeMap<&str, Vec<usize>> =
        ["plain", "once", "always", "crash", "killed", "lost", "refused"]
            .map(|word| (word, batch.starts_of(word)))
            .into();
    for (word, times) in starts {
        let expected = match word {
            "plain" | "refused" => 1,
            "always" => 4,
            _ => 2,
        };
        assert!(times.iter().all(|times| *times == expected), "{word}: {times:?}");
    }
    // Nothing is left to do.
    assert!(cluster.submit(&batch).is_empty());
}

/// Runs so many tasks that hang, and ends them by scancel with these words. Nothing is left.
fn cancelled(cluster: &Cluster, tasks: usize, how: &[&str]) {
    let batch = Batch::new(vec!["hang"; tasks]);
    let arrays = cluster.submit(&batch);
    eventually("they run", || batch.read("hanging").lines().count() == AT_ONCE);
    assert!(batch.processes().len() >= AT_ONCE * 4, "pi, and what it has started");
    let begun = now();
    cluster.run(&batch, &[&["scancel"], how, &[arrays[0].as_str()]].concat());
    batch.until_gone();
    eprintln!("scancel {how:?}: {:?} until nothing was left", begun.elapsed());
    cluster.until_done(&batch);
    assert!(batch.results().is_empty(), "{:?}", batch.results());
    let tries = std::fs::read_dir(batch.at("tries")).expect("tries").count();
    assert_eq!(tries, 0, "what was cancelled is no try");
}

/// rule: scale.md, Slurm: scancel leaves nothing running, neither by SIGTERM nor by SIGKILL
#[test]
#[ignore = "needs Slurm; make test-large"]
fn scancel_leaves_nothing_running() {
    let Some(cluster) = Cluster::start() else { return };
    cancelled(&cluster, AT_ONCE + 2, &[]);
    // What has not begun would begin then.
    cancelled(&cluster, AT_ONCE, &["--signal=KILL", "--full"]);
}

/// rule: scale.md, Slurm: What fails for all tasks ends the array and leaves no results
#[test]
#[ignore = "needs Slurm; make test-large"]
fn a_wrong_key_ends_the_array() {
    let Some(cluster) = Cluster::start() else { return };
    let batch = Batch::new(vec!["denied"; 3 * AT_ONCE]);
    let arrays = cluster.submit(&batch);
    cluster.until_done(&batch);
    assert!(batch.results().is_empty(), "{:?}", batch.results());
    assert!((1..=AT_ONCE).contains(&batch.starts()), "{} began", batch.starts());
    let log = batch.read(&format!("logs/{}_1.txt", arrays[0]));
    assert!(log.contains("401 invalid x-api-key"), "why, in its log: {log}");
}
