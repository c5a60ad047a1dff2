//! bash: runs a command as pi's built-in bash does, but lets the command go on in a background
//! window where it takes longer. When a call is answered is decided by the module above.

use serde_json::value::RawValue;

use super::window::Window;
use super::window_context::{CONTEXT, Context};
use super::{failed, start_failure_text, window_id};
use crate::limits::{NS_PER_MS, PTY_COLS, PTY_ROWS, RUNNING_WINDOWS_MAX, WINDOW_UNREAD_BYTES};
use crate::server::engine::conditions::answers_impossible;
use crate::server::engine::contract::{Answer, Call};
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::families::windows::name::{shown_command, window_name};
use crate::server::families::windows::text::seconds;
use crate::server::families::windows::window::WindowSpec;
use crate::server::families::{Engine, Entry, Method, Numbered, unified};
use crate::server::session::Ways;
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::view::View;
use crate::server::session::wait::{Progress, Wait, WaitKind};
use crate::server::session::wait_report::WaitReport;
use crate::sys::pty::Size;
use crate::wire::until::{self, Spelling, UNTIL_CAMEL};
use crate::wire::{self, Int, Kind, Reason, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "bash",
    summary: "Runs a command and answers with its output, as pi's bash does. What takes longer \
              than timeout goes on in a background window, whose end is reported by window_exited.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: true,
    while_closing: false,
    models: &[super::model::BASH],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        command "command": String = required(
            Kind::NonEmptyText,
            "the command, run as bash -c COMMAND",
        ) or "cmd";
        name "name": Option<String> = optional(
            Kind::Text,
            "the window's name; default: the command's",
        );
        timeout "timeout": Option<f64> = optional(
            Kind::Number,
            "foreground seconds, more than 0; default 30, at most 60",
        );
        timeout_action "timeoutAction": Option<String> = optional(
            Kind::Choice(&["background", "kill"]),
            "what happens then: it goes on in the background (default), or is ended",
        );
        background "background": bool = optional(
            Kind::Bool,
            "runs in the background from its start",
        );
        tty "tty": Option<bool> = optional(
            Kind::Bool,
            "gives it a terminal, for what asks for input; what the shell leaves behind on it gets \
             SIGHUP when the shell ends; default context.tty",
        );
        until "until": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::UNTIL_DOC,
        );
        stop "stop": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::STOP_DOC,
        );
        on_impossible "onImpossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            unified::ON_IMPOSSIBLE_DOC,
        );
        poll_interval "pollInterval": Option<f64> = optional(
            Kind::Number,
            "seconds between reports of its output, once it runs in the background; 0: none",
        );
        poll_lines "pollLines": Option<Int> = optional(Kind::Integer, "lines of each; default 30");
        stream "stream": bool = optional(Kind::Bool, "sends progress while it waits");
        tell_password "tellPassword": bool = optional(Kind::Bool, unified::TELL_PASSWORD_DOC);
        context "context": Option<Box<RawValue>> = optional(
            Kind::Object(CONTEXT),
            "the caller's settings",
        );
    }
}

impl Params {
    /// What else ends the wait for the foreground: the command goes on in the background then.
    fn conditions(&self) -> Result<Conditions, RpcError> {
        let (until, stop) = (self.until.as_deref(), self.stop.as_deref());
        if self.background && (until.is_some() || stop.is_some()) {
            let param = if until.is_some() { "until" } else { "stop" };
            let message = format!("{param} is for the foreground: background waits for nothing");
            return Err(RpcError::invalid_param(param, message));
        }
        until::read(until, stop, Spelling::Camel)
    }

    /// Whether the command gets a terminal.
    fn has_tty(&self, context: &Context) -> bool {
        self.tty.unwrap_or_else(|| context.tty())
    }
}

fn read(raw: &str) -> Result<(Params, Context), RpcError> {
    let params: Params = wire::read_params(raw)?;
    let context = Context::read(params.context.as_deref())?;
    if params.timeout.is_some_and(|seconds| seconds <= 0.0) {
        let most = seconds(context.timeout_ms(Some(f64::MAX)));
        let default = seconds(context.timeout_ms(None));
        let message = format!(
            "Invalid timeout: must be more than 0 seconds (more than {most} counts as {most}); \
             without one it is {default}"
        );
        return Err(RpcError::invalid_param("timeout", message));
    }
    params.conditions()?;
    Ok((params, context))
}

/// What the window goes by.
fn window_of(
    params: &Params,
    context: &Context,
    shown: &str,
    call: &Call<'_>,
    has_socket: bool,
) -> WindowSpec {
    let (template, chars) = (context.name_template(), context.name_chars());
    WindowSpec {
        name: window_name(shown, params.name.as_deref(), template, chars),
        client: call.client,
        scope: context.scope(),
        timeout_ms: context.timeout_ms(params.timeout),
        kill_at_timeout: params.timeout_action.as_deref() == Some("kill"),
        // Nobody waits for what has no id.
        background: params.background || call.id.is_none(),
        lines: context.lines(),
        completed_lines: context.completed_lines(),
        max_bytes: context.max_bytes(),
        always_log_path: context.always_log_path(),
        auto_close: context.auto_close(),
        poll: context.poll(params.poll_interval, params.poll_lines),
        tool: context.tool(),
        actions: context.actions(),
        // Without a socket nobody can attach.
        attach: if has_socket { context.attach() } else { String::new() },
    }
}

/// Refuses one more window when as many run as may.
fn room_for_one(engine: &Engine) -> Result<(), RpcError> {
    let running = engine.sessions.running(|family| family.windows().is_some());
    if running < RUNNING_WINDOWS_MAX.min(engine.cx.config.max_running) {
        return Ok(());
    }
    let message = format!(
        "{running} commands of bash run, as many as may at once: kill a background window, \
         or wait for one to end"
    );
    Err(RpcError::failed(Reason::TooManySessions, message))
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, context) = read(call.params)?;
    room_for_one(engine)?;
    let shown = shown_command(&params.command, context.marker()).to_owned();
    let window = window_of(&params, &context, &shown, call, engine.can_be_attached());
    let (timeout_ms, update_ms) = (window.timeout_ms, context.update_interval_ms());
    let tty = params.has_tty(&context);
    let conditions = params.conditions()?;
    // What was to be ended at its time is not left alone before.
    let may_go_on = !params.background && !window.kill_at_timeout;
    let answers_impossible =
        may_go_on && answers_impossible(params.on_impossible.as_deref(), &engine.cx.config);
    let Params { command, background, stream, tell_password, .. } = params;
    let spec = LaunchSpec {
        program: context.shell(),
        arguments: vec!["-c".into(), context.whole(&command).into()],
        own_program: None,
        command: shown,
        name: Some(window.name.clone()),
        workdir: context.cwd(),
        env: context.env(),
        stdin: Stdin::Null,
        tty: tty.then_some(Size { cols: PTY_COLS, rows: PTY_ROWS }),
        split: false,
        whole: false,
    };
    let id = match engine.launch(&spec) {
        Ok(id) => id,
        Err(failure) => {
            let cwd = engine.cx.resolved_cwd(spec.workdir.as_deref());
            let text = start_failure_text(&cwd, &failure);
            let mut report = failed(window.name, text);
            let asks = conditions.0.is_some() || conditions.1.is_some();
            report.wait = asks.then(|| WaitReport::not_started(timeout_ms).into());
            return Ok(Answer::of(&report));
        }
    };
    let progress = Progress { interval_ms: update_ms, ..Progress::default() };
    let answer = engine.wait_for(call, id, |ticket, now_ns| Wait {
        asked: Asked::new(conditions, 0, now_ns),
        answers_impossible,
        tells_password: tell_password && tty,
        tells_state: !background,
        due_ns: (!background).then(|| now_ns + timeout_ms * NS_PER_MS),
        progress: (stream && !background).then_some(progress),
        ..Wait::new(ticket, Window::ID, WaitKind::Start, now_ns)
    });
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        core.view = View::new(WINDOW_UNREAD_BYTES);
        core.ways = Ways { own_cap: true, drains: true, ..core.ways };
        core.facts.window = Some(window_id(id));
        let mut own = Window::new(window);
        if core.waits.is_empty() {
            own.leave_in_background(core, &mut engine.cx);
        }
        *family = own.into();
    }
    Ok(answer)
}
