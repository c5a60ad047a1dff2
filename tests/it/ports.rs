//! Waits for a port and for a page: a listener of the session ends them, whoever of its processes
//! has it and whatever its address; one of somebody else is told, and waited on.

use std::net::TcpListener;

use crate::common::outside::countable_fds;
use crate::common::*;
use serde_json::{Value, json};

/// Listens on the address and port of its arguments, prints the port, and waits.
const LISTENER: &str = "import socket,sys,time
h,p=sys.argv[1],int(sys.argv[2])
s=socket.socket(socket.AF_INET6 if ':' in h else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
s.bind((h,p)); s.listen(); print(s.getsockname()[1],flush=True); time.sleep(600)";

/// Listens, then leaves its listener to a child, whose pid it prints, and ends.
const HEIR: &str = "import os,socket,time
s=socket.create_server(('127.0.0.1',0))
if os.fork(): os._exit(0)
print(os.getpid(),flush=True); time.sleep(600)";

/// Leaves its session, its parents and its output, as daemons do, and listens.
const DAEMON: &str = "import os,socket,time
for again in range(2):
  if os.fork(): os._exit(0)
  os.setsid()
for fd in range(3): os.dup2(os.open('/dev/null',os.O_RDWR),fd)
s=socket.create_server(('127.0.0.1',0)); time.sleep(600)";

/// A server whose pages are named after how they answer.
const PAGES: &str = "import http.server,sys,time
asked=0
class H(http.server.BaseHTTPRequestHandler):
  def do_GET(s):
    global asked
    code={'/gone':404,'/moved':302,'/down':503}.get(s.path,200)
    if s.path=='/late':
      asked+=1
      code=200 if asked>2 else 503
    if s.path=='/silent': time.sleep(600)
    s.send_response(code); s.send_header('Location','/gone'); s.end_headers()
    s.wfile.write(b'x'*300000)
  def log_message(s,*a): pass
http.server.ThreadingHTTPServer(('127.0.0.1',int(sys.argv[1])),H).serve_forever()";

/// An execd, and a directory with the servers; None where there is no python3.
fn start() -> Option<Execd> {
    if missing("python3") {
        return None;
    }
    let execd = Execd::with(&["--max-sessions", "600"], &[]);
    for (name, text) in
        [("listener.py", LISTENER), ("heir.py", HEIR), ("daemon.py", DAEMON), ("pages.py", PAGES)]
    {
        std::fs::write(execd.file(name), text).expect("a file");
    }
    Some(execd)
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

fn with_until(cmd: &str, until: Value) -> Value {
    json!({"cmd": cmd, "until": until, "yield_time_ms": 60_000, "on_impossible": "wait"})
}

/// Asserts how a wait ended.
fn assert_ended(result: &Value, outcome: &str, by: &str) {
    let wait = &result["wait"];
    assert_eq!((&wait["outcome"], &wait["by"]), (&json!(outcome), &json!(by)), "{result}");
}

/// The row of a session that listens. A turn that loses its CPU for longer than it may look for
/// listeners leaves them out of its list: a daemon's once were, on a busy machine.
fn row_with_listeners(execd: &mut Execd, id: u64) -> Value {
    let mut row = Value::Null;
    eventually("a list has come to its listeners", || {
        row = execd.listed(id).expect("a row");
        row["listening"].is_array()
    });
    row
}

/// rule: waits.md, until and stop: `port`: a process of this session listens on this TCP port; `0`
///   or `"any"`: on any, and the reply says on which
/// rule: waits.md, Listening: `listening` names the TCP ports that processes of the session listen
///   on, with `port`, `address`, `pid` and `command`
#[test]
fn a_listener_on_whatever_address_ends_a_wait_for_its_port() {
    let Some(mut execd) = start() else { return };
    let addresses = [
        ("0.0.0.0", None, json!("any")),
        ("127.0.0.2", Some(free_port()), json!(null)),
        ("::1", None, json!(0)),
    ];
    for (address, port, any) in addresses {
        if TcpListener::bind((address, 0)).is_err() {
            continue;
        }
        let until = json!({"port": port.map_or(any, |port| json!(port))});
        let cmd = format!("exec python3 listener.py {address} {}", port.unwrap_or(0));
        let result = execd.exec(with_until(&cmd, until));
        assert_ended(&result, "matched", "port");
        let wait = &result["wait"];
        assert_eq!(result["wait_status"], "condition_met");
        assert_eq!((&wait["address"], &wait["pid"]), (&json!(address), &result["pid"]));
        assert_eq!(wait["present_at_entry"], false, "{wait}");
        let id = session_of(&result);
        let mut seen = output(&result).to_owned();
        if seen.is_empty() {
            seen = execd.read_until(id, "\n");
        }
        assert!(seen.contains(&wait["port"].to_string()), "{seen:?} {wait}");
        let row = row_with_listeners(&mut execd, id);
        let expected = json!([{"port": wait["port"], "address": address, "pid": wait["pid"],
            "command": "python3"}]);
        assert_eq!((&result["listening"], &row["listening"]), (&expected, &expected));
        let line = format!("\nwait: matched port {} (python3)\n", wait["port"]);
        assert!(result["header"].as_str().is_some_and(|it| it.contains(&line)), "{result}");
        execd.kill(id);
    }
}

/// rule: waits.md, The reply: `present_at_entry`: it stood in output that was there when the call
///   came
#[test]
fn a_listener_that_is_there_ends_a_wait_at_once_and_all_who_wait_are_answered() {
    let Some(mut execd) = start() else { return };
    let port = free_port();
    let id = session_of(&execd.open(&format!("read x; exec python3 listener.py 127.0.0.1 {port}")));
    // Until its line comes, the listener is impossible.
    let until = json!({"session_id": id, "until": {"port": port}, "yield_time_ms": 60_000,
        "on_impossible": "wait"});
    let any = merged(until.clone(), json!({"until": {"port": "any"}}));
    let waits = [
        execd.start_request("write_stdin", until.clone()),
        execd.start_request("write_stdin", any),
    ];
    execd.ping();
    let writes = json!({"session_id": id, "chars": "\\n", "yield_time_ms": 60_000,
        "stop": {"port": port}});
    let stopped = execd.write(writes);
    assert_ended(&stopped, "stopped", "port");
    for wait in waits {
        let result = execd.result_of(wait);
        assert_ended(&result, "matched", "port");
        assert_eq!(result["wait"]["present_at_entry"], false);
    }
    let there = execd.write(until);
    assert_ended(&there, "matched", "port");
    assert_eq!(there["wait"]["present_at_entry"], true);
    execd.kill(id);
    let over = execd.exec(with_until("sleep 0.3", json!({"port": port})));
    assert_eq!(over["wait"]["outcome"], "exited", "an exit ends it as ever: {over}");
}

/// rule: waits.md, Listening: a server's own, also one that a child has inherited. IPv4 and IPv6
///   count alike
#[test]
fn a_listener_that_a_child_has_inherited_is_the_sessions() {
    let Some(mut execd) = start() else { return };
    let cmd = "python3 heir.py & sleep 600";
    let result = execd.exec(with_until(cmd, json!({"port": "any"})));
    assert_ended(&result, "matched", "port");
    let id = session_of(&result);
    let mut printed = output(&result).to_owned();
    if printed.is_empty() {
        printed = execd.read_until(id, "\n");
    }
    let heir: i64 = printed.trim().parse().expect("a pid");
    eventually("the child alone has it", || {
        let row = execd.listed(id).expect("a row");
        row["listening"][0]["pid"] == heir
    });
}

/// rule: waits.md, Listening: that of a daemon that has left the session, by a second fork and
///   setsid(2), and has emptied its environment
#[test]
fn a_listener_of_a_daemon_is_the_sessions_that_started_it() {
    let Some(mut execd) = start() else { return };
    let other = session_of(&execd.open("sleep 600"));
    let cmd = "env -i \"$(command -v python3)\" daemon.py; sleep 600";
    let result = execd.exec(with_until(cmd, json!({"port": "any"})));
    assert_ended(&result, "matched", "port");
    let wait = &result["wait"];
    let pid = i32::try_from(wait["pid"].as_i64().expect("a pid")).expect("a pid");
    let row = row_with_listeners(&mut execd, session_of(&result));
    let row_of_other = execd.listed(other).expect("a row");
    let until = json!({"session_id": other, "until": {"port": wait["port"]},
        "yield_time_ms": 5_000});
    let held = execd.write(until);
    // Nobody else ends it.
    send_signal(pid, libc::SIGKILL);
    let expected = json!([{"port": wait["port"], "address": "127.0.0.1", "pid": pid,
        "command": "python3"}]);
    assert_eq!(row["listening"], expected);
    assert_absent(&row_of_other, &["listening"]);
    assert_eq!(held["wait"]["outcome"], "deadline", "it is no other session's: {held}");
    let note = format!("port {} is already held by python3 (pid {pid})", wait["port"]);
    assert_eq!(held["note"], note.as_str(), "{held}");
}

/// rule: waits.md, Listening: A process in a network of its own has its listeners there
#[test]
fn a_listener_in_another_network_is_found() {
    let Some(mut execd) = start() else { return };
    let may = std::process::Command::new("unshare").args(["-rn", "true"]).output();
    if !may.is_ok_and(|done| done.status.success()) {
        return left_out("unshare -rn is not allowed here");
    }
    // The same port here is a stranger's, and says nothing of the one there.
    let here = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = here.local_addr().expect("an address").port();
    let cmd = format!("exec unshare -rn python3 listener.py 0.0.0.0 {port}");
    let result = execd.exec(with_until(&cmd, json!({"port": port})));
    assert_ended(&result, "matched", "port");
    assert_eq!(result["listening"][0]["port"], port);
}

/// rule: waits.md, Listening: a turn looks at processes for a bounded time (5 ms)
#[test]
fn lists_of_hundreds_of_sessions_come_to_the_one_that_listens() {
    const SESSIONS: usize = 512;
    let Some(mut execd) = start() else { return };
    for _ in 0..2 {
        execd.open_all(&["exec sleep 600"; SESSIONS / 2]);
    }
    let cmd = "exec python3 listener.py 127.0.0.1 0";
    let id = session_of(&execd.exec(with_until(cmd, json!({"port": "any"}))));
    row_with_listeners(&mut execd, id);
}

/// rule: waits.md, Listening: A wait for a port that somebody else holds goes on, and its answer
///   says who holds the port
#[test]
fn a_port_that_somebody_else_holds_is_told_and_waited_for() {
    let Some(mut execd) = start() else { return };
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = stranger.local_addr().expect("an address").port();
    let own = std::process::id();
    let name = std::fs::read_to_string("/proc/self/comm").expect("a name");
    let note = format!("port {held} is already held by {} (pid {own})", name.trim());
    let [unified, stream, bash] = [
        ("exec_command", json!({"yield_time_ms": 5_000})),
        ("bash_stream", json!({"yieldMs": 5_000})),
        ("bash", json!({"timeout": 5})),
    ]
    .map(|(method, more)| {
        let params = json!({"command": "sleep 600", "until": {"port": held}});
        execd.start_request(method, merged(params, more))
    });
    for request in [unified, stream] {
        let result = execd.result_of(request);
        assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
        assert_eq!(result["note"], note.as_str(), "{result}");
    }
    let result = execd.result_of(bash);
    assert!(result["text"].as_str().is_some_and(|text| text.contains(&note)), "{result}");
    // It is let go of: the session's own server comes.
    drop(stranger);
    let cmd = format!("exec python3 listener.py 127.0.0.1 {held}");
    assert_ended(&execd.exec(with_until(&cmd, json!({"port": held}))), "matched", "port");
}

/// rule: waits.md, until and stop: `http`: a listener of this session answers a GET of `path` on
///   loopback with this status; 200 to 399 unless said
#[test]
fn a_page_ends_a_wait_with_its_status() {
    let Some(mut execd) = start() else { return };
    let port = free_port();
    let cmd = format!("exec python3 pages.py {port}");
    let page = |path: &str, more: Value| json!({"http": merged(json!({"path": path}), more)});
    let first = execd.exec(with_until(&cmd, page("/late", json!({"port": port}))));
    assert_ended(&first, "matched", "http");
    let wait = &first["wait"];
    assert_eq!((&wait["status"], &wait["port"]), (&json!(200), &json!(port)), "after two 503");
    let line = format!("\nwait: matched http 200 on port {port} (python3)\n");
    assert!(first["header"].as_str().is_some_and(|header| header.contains(&line)), "{first}");
    let id = session_of(&first);
    for (path, more, status) in [
        ("/", json!({}), 200),
        ("/moved", json!({}), 302),
        ("/gone", json!({"status": 404}), 404),
        ("/down?a=b", json!({"status": [200, 299]}), 200),
        ("/down", json!({"status": [500, 599]}), 503),
    ] {
        let until = page(path, more);
        let result =
            execd.write(json!({"session_id": id, "until": until, "yield_time_ms": 60_000}));
        assert_ended(&result, "matched", "http");
        assert_eq!(result["wait"]["status"], status, "{path}");
    }
    let until = json!({"session_id": id, "yield_time_ms": 60_000,
        "until": page("/gone", json!({})), "stop": page("/gone", json!({"status": [400, 499]}))});
    assert_ended(&execd.write(until), "stopped", "http");
}

/// rule: waits.md, Listening: A server that closes without an answer, or in the middle of its first
///   line, is asked again
#[test]
fn a_server_that_accepts_and_closes_is_asked_again() {
    let Some(mut execd) = start() else { return };
    let server = "import socket,sys
s=socket.create_server(('127.0.0.1',0))
for answer in [b'', b'', b'HTTP/1.1 2', b'', b'HTTP/1.1 204 Done\\r\\n\\r\\n']:
  c,_=s.accept()
  if answer: c.recv(65536); c.sendall(answer)
  c.close(); print('asked',flush=True)
s.accept()";
    std::fs::write(execd.file("closes.py"), server).expect("a file");
    let until = json!({"http": {"path": "/"}});
    let result = execd.exec(with_until("exec python3 closes.py", until));
    assert_ended(&result, "matched", "http");
    assert_eq!(result["wait"]["status"], 204, "{result}");
    let fds = countable_fds(execd.pid());
    execd.kill(session_of(&result));
    eventually("nothing is left", || countable_fds(execd.pid()) < fds);
}

/// rule: waits.md, Listening: Servers that `http` asks are asked in turn, each for a bounded time
#[test]
fn a_server_that_never_answers_holds_up_nobody_and_leaves_nothing_behind() {
    let Some(mut execd) = start() else { return };
    let (silent, answers) = (free_port(), free_port());
    let cmd = format!("python3 listener.py 127.0.0.1 {silent} & exec python3 pages.py {answers}");
    let any = json!({"port": "any"});
    let id = session_of(&execd.exec(with_until(&cmd, any)));
    eventually("both listen", || {
        execd.listed(id).expect("a row")["listening"].as_array().is_some_and(|all| all.len() == 2)
    });
    let before = countable_fds(execd.pid());
    let params =
        |http: Value| json!({"session_id": id, "until": {"http": http}, "yield_time_ms": 60_000});
    let in_turn = execd.write(params(json!({"path": "/"})));
    assert_ended(&in_turn, "matched", "http");
    assert_eq!(in_turn["wait"]["port"], answers);
    for path in ["/", "/silent"] {
        let port = if path == "/" { silent } else { answers };
        let wait = execd.start_request("write_stdin", params(json!({"port": port, "path": path})));
        eventually("it is asked", || countable_fds(execd.pid()) > before);
        execd.ping();
        execd.cancel(wait);
        assert_eq!(execd.result_of(wait)["wait"]["outcome"], "cancelled");
        eventually("nothing is left", || countable_fds(execd.pid()) <= before);
    }
    let wait = execd.start_request("write_stdin", params(json!({"port": silent, "path": "/"})));
    eventually("it is asked", || countable_fds(execd.pid()) > before);
    execd.kill(id);
    assert_eq!(execd.result_of(wait)["wait"]["outcome"], "exited");
    eventually("nothing is left", || countable_fds(execd.pid()) <= before);
}
