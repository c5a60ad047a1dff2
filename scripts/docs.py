#!/usr/bin/env python3
"""Writes docs/methods.md, docs/cli.md and src/mcp/replies.json (`make docs`), or compares them with
what it would write.

    scripts/docs.py BINARY [--check]

Methods and params are what `BINARY --describe` prints, commands and flags what `BINARY help` does.
Fields of replies and of notifications, error codes and words are the comments in src.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

EXEC = "server/session/report.rs ExecReport"
STREAM = "server/families/stream/mod.rs Report"
RUN = "pure/agent/report.rs AgentReport"
RUN_LOG = "server/families/agent/mod.rs RunLog"
GOING_ON = "server/families/agent/mod.rs GoingOn"
SO_FAR = "pure/agent/report.rs SoFar"
# Types whose fields stand behind those of another one in its object.
BEHIND = {RUN: [RUN_LOG], GOING_ON: [SO_FAR, RUN_LOG]}
# The types of the replies of each method. A file alone: its reply is the JSON in that file.
REPLIES = {
    "exec_command": [EXEC],
    "write_stdin": [EXEC, "server/families/stream/job_input.rs Taken"],
    "kill_session": ["server/session/report.rs KillReport"],
    "list_sessions": ["server/families/unified/list_sessions.rs List"],
    "set_on_exit": ["server/families/unified/set_on_exit.rs"],
    "resize_session": ["server/families/unified/resize_session.rs"],
    "wait_for": ["server/families/waits/reply.rs Reply"],
    "bash_stream": [STREAM],
    "poll_process": [STREAM],
    "kill_process": [STREAM],
    "list_processes": ["server/families/stream/list_processes.rs List"],
    "get_process_log": ["server/engine/pages.rs PageReport"],
    "bash": ["server/families/windows/mod.rs BashReport"],
    "tmux": ["server/families/windows/books.rs Seen"],
    "agent_execute": [RUN, GOING_ON],
    "agent_result": [RUN, GOING_ON],
    "agent_health": ["agent/probe.rs Health"],
    "agent_capabilities": ["server/families/agent/agent_capabilities.rs"],
    "attach_session": ["server/families/attach/attach_session.rs Attached"],
    "attach_input": ["server/families/attach/attach_input.rs Taken"],
    "detach_session": ["server/families/attach/detach_session.rs"],
    "read_output": ["server/families/reading/reply.rs Report"],
    "cancel": ["server/front/cancel.rs"],
    "events": ["server/engine/ledger.rs Page"],
    "reserve_session_ids": ["server/front/reserve_session_ids.rs"],
    "ping": [],
    "server_info": ["server/front/server_info.rs"],
    "shutdown": ["server/engine/closing/steps.rs"],
}
# The types of the params of each notification.
NOTIFICATIONS = {
    "progress": "server/engine/notices.rs ProgressNote",
    "session_started": "server/engine/notices.rs StartedNote",
    "session_exited": "server/engine/notices.rs ExitedNote",
    "sessions_changed": "server/engine/clients.rs ChangedNote",
    "tool_execution_output": "server/families/stream/chunks.rs ChunkNote",
    "tool_execution_truncated": "server/families/stream/chunks.rs TruncatedNote",
    "tool_execution_progress": "server/families/stream/mod.rs YieldNote",
    "window_exited": "server/families/windows/notes.rs ExitedNote",
    "window_poll": "server/families/windows/notes.rs PollNote",
    "agent_event": "pure/agent/told.rs Told",
    "attach_output": "server/families/attach/mod.rs OutputNote",
    "attach_ended": "server/families/attach/mod.rs EndedNote",
}
# Objects that are fields of several replies.
OBJECTS = {
    "`wait`": "server/session/wait_report.rs $Name",
    "`state_detail`": "server/session/state_report.rs $Detail",
    "`truncation`": "server/session/report.rs TruncationReport",
    "`listening`": "server/session/listening.rs Listening",
    "an event": "pure/ledger.rs Event",
}
# The types whose comments hold for fields of the same name in other replies.
SHARED = [EXEC, "server/session/state_report.rs $Name"]
LOG = "server/engine/keeper_link/logs.rs LogTrouble"
# Files whose fields and params whose fields a page explains: their names are enough here.
EXPLAINED = [
    "pure/agent/end.rs", "pure/agent/report.rs", "pure/agent/told.rs", "pure/ledger.rs",
    "server/session/listening.rs", "server/session/wait_report.rs",
]
EXPLAINED_PARAMS = {
    "context": "[pi.md](pi.md)",
    "until": "[waits.md](waits.md)",
}
# Types that a macro declares twice, for the two ways in which names are spelt, and others that are
# not beside those who use them.
ELSEWHERE = {
    "StateReport": "server/session/state_report.rs $Name",
    "StateDetail": "server/session/state_report.rs $Detail",
    "Detail": "server/session/state_report.rs $Detail",
    "WaitReport": "server/session/wait_report.rs $Name",
    "LogTrouble": LOG,
}


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)


def camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def phrase(comment: str) -> str:
    """A comment as the text behind a name: no capital first, no full stop last."""
    text = comment.removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


# ---- Types in src -----------------------------------------------------------------------


class Type:
    """A Rust struct: its comment; its fields as (name on the wire, name, comment, Rust type)."""

    def __init__(self, place: str) -> None:
        self.path, name = place.split(" ")
        text = (SRC / self.path).read_text()
        above = r"((?: *///.*\n| *#\[.*\n)*) *(?:pub(?:\(\w+\))? )?"
        head = re.search(above + "struct " + re.escape(name) + r"(?:<'a>)? \{\n", text)
        if head is None:
            sys.exit(f"{self.path} has no struct {name}: change scripts/docs.py")
        self.comment = " ".join(re.findall(r"^ *///? ?(.*)$", head[1], re.M))
        spelling = camel if 'rename_all = "camelCase"' in head[1] else str
        self.fields, self.required = [], []
        comment, marks = [], ""
        for line in map(str.strip, text[head.end():].splitlines()):
            if line.startswith("///"):
                comment.append(line[3:].strip())
            elif line.startswith("#["):
                marks += line
            elif line == "}":
                break
            elif field := re.match(r"(?:pub(?:\(\w+\))? )?(\w+): (.*),$", line):
                renamed = re.search(r'rename = "(\w+)"', marks)
                wire = renamed[1] if renamed else spelling(field[1])
                if "serde(flatten)" in marks:
                    inner = type_of(field[2], self.path).fields
                    if "Camel" in field[2]:
                        inner = [
                            (camel(wire), name, said, rust.replace("$Detail", "StateDetailCamel"))
                            for wire, name, said, rust in inner
                        ]
                    self.fields += inner
                elif "serde(skip)" not in marks:
                    self.fields.append((wire, field[1], " ".join(comment), field[2]))
                    if "skip_serializing_if" not in marks:
                        self.required.append(wire)
                comment, marks = [], ""


def type_of(rust: str, near: str):
    """The struct that a field's type names, if it is one of ours."""
    name = re.findall(r"[A-Z]\w+", rust.replace("RawValue", ""))[-1:]
    if not name:
        return None
    if place := ELSEWHERE.get(name[0].removesuffix("Camel")):
        return Type(place)
    declared = re.compile(r"struct " + name[0] + r"(?:<'a>)? \{")
    used = re.findall(r"use crate::([\w:]+)::(?:\{[^}]*\b)?" + name[0], (SRC / near).read_text())
    beside = pathlib.Path(near).parent
    used = [one.replace("::", "/") for one in used]
    places = [near, *(one + end for one in used for end in (".rs", "/mod.rs"))]
    places += [str(one.relative_to(SRC)) for one in sorted((SRC / beside).glob("*.rs"))]
    for place in places:
        if (SRC / place).exists() and declared.search((SRC / place).read_text()):
            return Type(f"{place} {name[0]}")
    return None


# Types of fields, as JSON Schema calls them.
JSON_TYPES = [
    (r"f64", "number"), (r"bool", "boolean"), (r"str|String", "string"),
    (r"[ui](8|16|32|64|size)|SessionId", "integer"),
]


def json_schema(rust: str, near: str) -> dict:
    """The JSON Schema of a field; {} where its type says nothing."""
    rust = rust.removeprefix("Option<").removesuffix(">") if rust.startswith("Option<") else rust
    if listed := re.fullmatch(r"Vec<(.*)>", rust):
        return {"type": "array", "items": json_schema(listed[1], near)}
    plain = re.sub(r"^Box<(.*)>$", r"\1", rust).split("::")[-1]
    plain = re.sub(r"^&('\w+ )?", "", plain)
    for pattern, name in JSON_TYPES:
        if re.fullmatch(pattern, plain):
            return {"type": name}
    inner = type_of(plain, near)
    # The same struct is named in two ways, for snake case and for camel case.
    return object_schema(inner, "Camel" in plain) if inner else {}


def object_schema(one: "Type", in_camel: bool = False) -> dict:
    spelt = camel if in_camel else str
    fields = {spelt(wire): json_schema(rust, one.path) for wire, _, _, rust in one.fields}
    for wire, _, _, rust in one.fields:
        field = fields[spelt(wire)]
        if rust.startswith("Option<") and wire in one.required and "type" in field:
            field["type"] = [field["type"], "null"]
    return {"type": "object", "properties": fields, "required": list(map(spelt, one.required))}


def whole_schema(place: str) -> dict:
    """The schema of a type, with the fields of those that stand behind it."""
    parts = [object_schema(Type(one)) for one in [place, *BEHIND.get(place, [])]]
    fields = {name: kind for one in parts for name, kind in one["properties"].items()}
    required = list(dict.fromkeys(name for one in parts for name in one["required"]))
    return {"type": "object", "properties": fields, "required": required}


def reply_schema(places: list) -> dict:
    """The schema of a method's reply: what all of its forms have is required."""
    made = [
        whole_schema(place) if " " in place
        else {"properties": {name: {} for name in json_keys(place)}, "required": []}
        for place in places
    ]
    fields = {name: kind for one in made for name, kind in one["properties"].items()}
    required = [name for name in made[0]["required"] if all(name in one["required"] for one in made)]
    return {"type": "object", "properties": fields, "required": required}


def replies(described: dict) -> str:
    """src/mcp/replies.json: a line for each tool of `execd mcp`."""
    tools = {tool["name"] for one in described["sets"] for tool in one["tools"]}
    lines = [
        f"{json.dumps(name)}: {json.dumps(reply_schema(places), separators=(',', ':'))}"
        for name, places in REPLIES.items() if name in tools
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def json_keys(path: str) -> list:
    """The fields of the JSON that a method's file writes."""
    text = (SRC / path).read_text().split("#[cfg(test)]")[0]
    if "wire::params!" in text and "CAPABILITIES" not in text:
        text = text.split("\nfn call(")[1]
    text = re.sub(r'r#"(.*?)"#', r"\1", text)
    keys = re.findall(r'"(\w+)": |\["(\w+)"\] = |"(\w+)":[\["{]', text)
    return list(dict.fromkeys("".join(one) for one in keys))


def variants(path: str, enum: str) -> dict:
    """The variants of an enum, each with its comment."""
    body = (SRC / path).read_text().split(f"pub enum {enum} {{")[1].split("\n}")[0]
    found = re.findall(r"((?: *///.*\n)+) *(\w+),", body)
    return {name: phrase(" ".join(re.findall("/// ?(.*)", text))) for text, name in found}


# ---- docs/methods.md --------------------------------------------------------------------


def kind(schema: dict) -> str:
    """The type of a param, in a few words."""
    if words := schema.get("enum"):
        return " or ".join(f"`{word}`" for word in words)
    if choice := schema.get("oneOf"):
        return " or ".join(dict.fromkeys(kind(one) for one in choice))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {kind(schema['items'])}s"
    named = schema.get("type", "any")
    return named if isinstance(named, str) else " or ".join(named)


def param_lines(name: str, schema: dict, required: bool, indent: str = "") -> list:
    """The lines of a param, and of the fields of an object."""
    also = f", also {names(schema['aliases'])}" if "aliases" in schema else ""
    text = schema["description"].replace('"', "`")
    needed = ", required" if required else ""
    # Words in quotes in the text name the choices.
    choices = schema.get("enum")
    told = choices and all(f"`{one}`" in text for one in choices)
    # A default or a range tells the type too.
    evident = re.search(r"(true|false): |default (true|false|\d)|clamped", text)
    type_is = "" if told or evident else f" {kind(schema)}"
    lines = [f"{indent}- `{name}`{type_is}{needed}{also}: {text}"]
    if name == "stop":
        return lines
    if name in EXPLAINED_PARAMS:
        return [f"{lines[0]} ({EXPLAINED_PARAMS[name]}): {names(schema['properties'])}"]
    for inner, fields in schema.get("properties", {}).items():
        if "description" in fields:
            lines += param_lines(inner, fields, inner in schema.get("required", []), indent + "  ")
    return lines


def names(all_names) -> str:
    return ", ".join(f"`{name}`" for name in all_names)


class Page:
    """docs/methods.md, as it is made."""

    def __init__(self, described: dict) -> None:
        self.methods = described["methods"]
        uses = {}
        for method in self.methods:
            for form in ("params", "otherParams"):
                for name, schema in ((method[form] or {}).get("properties") or {}).items():
                    uses.setdefault((snake(name), schema["description"]), []).append((name, schema))
        self.shared_params = {
            key: used[0] for key, used in uses.items() if len(used) > 1
        }
        places = [*(one for all_of in REPLIES.values() for one in all_of), *NOTIFICATIONS.values()]
        self.types = {place: Type(place) for place in dict.fromkeys(places) if " " in place}
        self.log_comments = [field[2] for field in Type(LOG).fields]
        self.shared = {
            name: comment
            for one in map(Type, SHARED)
            for _, name, comment, _ in one.fields
            if comment and self.uses_of(name) > 1
        }

    def uses_of(self, name: str) -> int:
        return sum(field[1] == name for one in self.all_types() for field in one.fields)

    def all_types(self) -> list:
        """The types of replies and notifications, and those of the rows in them."""
        found = list(self.types.values())
        for one in list(found):
            rows = (type_of(rust, one.path) for _, _, _, rust in one.fields if "Vec<" in rust)
            found += [row for row in rows if row and row.path.startswith("server/families")]
        return [one for one in found if one.path not in EXPLAINED]

    def is_shared(self, name: str, comment: str) -> bool:
        """Whether a field means what it does in other replies."""
        return name in self.shared and comment in (self.shared[name], *self.log_comments)

    def fields(self, one: Type) -> str:
        """The fields of a reply: those with a text of their own, then the names of the others."""
        own, others, rows = [], [], []
        for wire, name, comment, rust in one.fields:
            inner = type_of(rust, one.path)
            text = f"`{wire}`"
            if inner and "Vec<" in rust and inner.path.startswith("server/families"):
                rows.append(f" Each of `{wire}`: {self.fields(inner)}")
            elif inner and inner.path.startswith("pure/agent"):
                text += f" ({self.fields(inner).rstrip('.')})"
            elif comment and not self.is_shared(name, comment) and one.path not in EXPLAINED:
                text += f" ({phrase(comment)})"
            (own if "(" in text else others).append(text)
        return ", ".join(own + others) + "." + "".join(rows)

    def all_fields(self, place: str) -> str:
        """The fields of a reply, with those that stand behind them."""
        parts = [self.fields(self.types[place])]
        parts += [self.fields(Type(more)) for more in BEHIND.get(place, [])]
        return ", ".join(part.rstrip(".") for part in parts) + "."

    def reply(self, method: str) -> list:
        places = REPLIES.get(method)
        if places is None:
            sys.exit(f"the method {method} is not in scripts/docs.py: say which type its reply is")
        if not places:
            return []
        first = next(one for one, used in REPLIES.items() if used[:1] == places[:1])
        lines = []
        if first != method:
            lines += [f"Reply: as of [{first}](#{first}).", ""]
        elif " " in places[0]:
            lines += [f"Reply: {self.all_fields(places[0])}", ""]
        else:
            lines += [f"Reply: {names(json_keys(places[0]))}.", ""]
        if places[1:] and (first == method or method == "write_stdin"):
            when = "with `sessionId`" if method == "write_stdin" else "while it goes on"
            lines += [f"Reply {when}: {self.all_fields(places[1])}", ""]
        return lines

    def params(self, schema: dict) -> list:
        lines, shared = [], []
        for name, one in schema["properties"].items():
            required = name in schema["required"]
            key = (snake(name), one["description"])
            if key in self.shared_params:
                shared.append(f"`{name}`{' (required)' if required else ''}")
            else:
                lines += param_lines(name, one, required)
        # What is required comes first.
        if not any(line.startswith("  ") for line in lines):
            lines.sort(key=lambda line: ", required" not in line)
        return lines + ([f"- {', '.join(shared)}"] if shared else [])

    def made(self) -> str:
        out = [
            "# Methods, replies, errors", "",
            "Every method with its params and the fields of its reply, every notification, every "
            "error. `make docs` writes this page from `execd --describe` and from the comments in "
            "src. [protocol.md](protocol.md) says how requests and replies travel, "
            "[scripts.md](scripts.md) which method to take.", "",
            "Names without a text stand in [params of several methods](#params-of-several-methods) "
            "and [fields of several replies](#fields-of-several-replies), or say it themselves. A "
            "field that does not apply is absent.", "",
        ]
        for method in self.methods:
            name = method["name"]
            out += [f"## {name}", "", method["summary"], ""]
            if method["params"]["properties"]:
                out += [*self.params(method["params"]), ""]
            if method["otherParams"]:
                out += ["Or:", "", *self.params(method["otherParams"]), ""]
            out += self.reply(name)
        out += ["## Params of several methods", ""]
        for name, schema in self.shared_params.values():
            out += param_lines(name, schema, False)
        out += ["", "## Fields of several replies", ""]
        out += [f"- `{name}`: {phrase(text)}" for name, text in self.shared.items()]
        out += ["", "## Objects in replies", ""]
        for name, place in OBJECTS.items():
            one = Type(place)
            fields = (f"`{wire}` ({phrase(text)})" if text and one.path not in EXPLAINED
                      else f"`{wire}`" for wire, _, text, _ in one.fields)
            out += [f"- {name}: {', '.join(fields)}"]
        events = variants("pure/ledger.rs", "What")
        what = ", ".join(f"`{snake(name)[1:]}` ({text})" for name, text in events.items())
        out += ["", f"The words of an event's `what`: {what}.", ""]
        killed = (SRC / "pure/process/killed.rs").read_text()
        killed = killed.split("fn as_str")[1].split("\n    }")[0]
        words = dict(re.findall(r'Self::(\w+) => "([\w ]+)"', killed))
        by = ", ".join(f"`{words[name]}` ({text})"
                       for name, text in variants("pure/process/killed.rs", "KilledBy").items())
        out += [f"The words of `killed_by`: {by}."]
        out += ["", "## Notifications", ""]
        for name, place in NOTIFICATIONS.items():
            one = self.types[place]
            comment = one.comment.split("  |")[0]
            out += [f"### {name}", "", comment, "", f"Params: {self.fields(one)}", ""]
        out += ["## Errors", ""]
        source = (SRC / "wire/error.rs").read_text()
        codes = {}
        for code, text in re.findall(r"/// (-\d+): (.*)", source):
            codes.setdefault(code, phrase(text))
        out += [f"- `{code}`: {text}" for code, text in codes.items()]
        out += ["", "The words of `data.reason`:", ""]
        out += [f"- `{snake(name)[1:]}`: {text}"
                for name, text in variants("wire/error.rs", "Reason").items()]
        return "\n".join(out) + "\n"


# ---- docs/cli.md ------------------------------------------------------------------------


def cli(binary: str) -> str:
    def printed(*words: str) -> str:
        return subprocess.run([binary, *words], check=True, capture_output=True, text=True).stdout

    out = [
        "# The command line", "",
        "Every command with all of its flags, as `execd help --all` prints it; `make docs` writes "
        "this page. [people.md](people.md) shows the commands at work.", "",
    ]
    for name in ["flags", *printed("help", "--names").split()]:
        title = "execd, and flags that run, agent and call take too"
        if name != "flags":
            title = "execd " + name.replace("-", " ")
        text = printed("help", "--all", name).rstrip("\n")
        out += [f"## {title}", "", "```text", text, "```", ""]
    return "\n".join(out).rstrip("\n") + "\n"


def main() -> None:
    arguments = [one for one in sys.argv[1:] if one != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    binary = str(pathlib.Path(arguments[0]).resolve())
    described, models = (
        json.loads(subprocess.run([binary, *flags], check=True, capture_output=True).stdout)
        for flags in (["--describe"], ["--describe", "--for-models"])
    )
    pages = {
        "docs/methods.md": Page(described).made(), "docs/cli.md": cli(binary),
        "src/mcp/replies.json": replies(models),
    }
    for name, made in pages.items():
        path = ROOT / name
        if "--check" not in sys.argv:
            path.write_text(made)
            continue
        kept = path.read_text().splitlines() if path.exists() else []
        wanted = made.splitlines()
        for number in range(max(len(kept), len(wanted))):
            is_now, is_wanted = (lines[number] if number < len(lines) else "(no line)"
                                 for lines in (kept, wanted))
            if is_now != is_wanted:
                sys.exit(f"{name}:{number + 1}: run `make docs`\n  is:     {is_now}\n"
                         f"  should: {is_wanted}")


main()
