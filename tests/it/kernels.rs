//! execd on kernels that are older than this one, as far as that can be had: what they have no
//! system call for is refused, as they would (docs/compatibility.md).

use crate::common::outside::refuse_calls_after;
use crate::common::{Execd, Setup, eventually, is_alive, log_of, send_signal, session_of};
use serde_json::json;

/// Releases of the kernel, with the number of the last system call that each has, and what
/// `degraded` says there: how each text begins.
const KERNELS: [(&str, u32, &[&str]); 3] = [
    ("5.4", 435, &["close_range with CLOSE_RANGE_UNSHARE (Linux 5.9): "]),
    ("5.15", 448, &[]),
    ("6.1", 450, &[]),
];

/// A leader with a job in its process group, and one in a group of its own.
const JOBS: &str = "sleep 300 & set -m; sleep 300 & echo up; wait";

fn on_kernel(last: u32, args: &[&str]) -> Execd {
    Setup::new(args).prepared(refuse_calls_after(libc::ENOSYS, last)).start()
}

/// rule: architecture.md, Starting a child: What is refused at start and sessions can do without is
///   named once, not a reason to refuse
#[test]
fn older_kernels_run_commands_and_what_they_lack_is_named() {
    for (kernel, last, missing) in KERNELS {
        let mut execd = on_kernel(last, &[]);
        let info = execd.result("server_info", json!({}));
        let degraded: Vec<&str> = info["degraded"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str())
            .collect();
        let begins = degraded.iter().zip(missing).all(|(text, begin)| text.starts_with(begin));
        assert!(begins && degraded.len() == missing.len(), "{kernel}: {info}");
        for tty in [false, true] {
            let more = json!({"tty": tty});
            let done = execd.run_with("seq 3; exit 3", more);
            assert_eq!(done["exit_code"], 3, "{kernel}, tty {tty}: {done}");
            let (ends, count) = if tty { ("\r\n", 9) } else { ("\n", 6) };
            let log = log_of(&done);
            assert_eq!((log.len(), log.starts_with(format!("1{ends}").as_bytes())), (count, true));
            assert!(done.get("failure_message").is_none(), "{kernel}: {done}");
        }
        let session = execd.open_ready("read line; echo \"got $line\"", "", json!({}));
        assert!(execd.input_until(session, "a line\n", "got").contains("got a line"), "{kernel}");
    }
}

#[test]
fn older_kernels_leave_nothing_behind() {
    for (kernel, last, _) in KERNELS {
        let mut execd = on_kernel(last, &[]);
        let opened = execd.open_until(JOBS, "up");
        let killed = execd.kill(opened);
        assert_eq!(killed["killed"], true, "{kernel}: {killed}");
        execd.until_no_session_process();

        let mut execd = on_kernel(last, &[]);
        let opened = execd.open_with(JOBS, json!({"tty": true}));
        assert!(session_of(&opened) > 0);
        let helper = execd.keeper();
        let own = execd.pid();
        send_signal(own, libc::SIGKILL);
        eventually("execd has ended", || !is_alive(own));
        execd.until_no_session_process();
        eventually("its helper ends", || !is_alive(helper));
    }
}
