"""Adds up captured streams of pi, apart from execd: what its tests compare execd's results with.

    python3 scripts/pi_totals.py [DIR]        # by default tests/fixtures/pi-json

Reads DIR/pi-VERSION.runs.json and the streams beside it (see pi-extension/scripts/
capture-streams.ts); writes DIR/totals.json and the table of DIR/README.md. Everything is summed
over the message_end lines of assistant messages, with the json module and nothing of execd.
"""

import json
import sys
from pathlib import Path

FINISH = {
    "stop": "stop", "endTurn": "stop", "toolUse": "tool_calls", "maxTokens": "length",
    "length": "length", "refusal": "content_filter", "safety": "content_filter",
    "aborted": "error", "error": "error",
}
COST_KEYS = {
    "input": "input", "output": "output", "cache_read": "cacheRead",
    "cache_write": "cacheWrite", "total": "total",
}
TABLE_START = "<!-- totals: written by scripts/pi_totals.py -->"


def totals_of(events, run):
    """What one run came to, under the names of agent_execute's result."""
    answers = [
        event["message"] for event in events
        if event["type"] == "message_end" and event["message"]["role"] == "assistant"
    ]
    usages = [answer["usage"] for answer in answers]
    blocks = [block for answer in answers for block in answer["content"]]
    names = [block["name"] for block in blocks if block["type"] == "toolCall"]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    retries = [event for event in events if event["type"] == "auto_retry_start"]
    gave_up = [
        event for event in events
        if event["type"] == "auto_retry_end" and not event["success"]
    ]
    reasoning = sum(usage.get("reasoning", 0) for usage in usages)
    cost = {name: sum(usage["cost"][key] for usage in usages) for name, key in COST_KEYS.items()}
    finish = FINISH.get(answers[-1]["stopReason"], answers[-1]["stopReason"])
    return {
        "what": run["what"],
        "exit_code": run["exit_code"],
        "success": run["exit_code"] == 0 and finish in ("stop", "length", "tool_calls"),
        "finish_reason": finish,
        "session_id": next(event["id"] for event in events if event["type"] == "session"),
        "num_turns": sum(event["type"] == "turn_start" for event in events),
        "tool_call_count": len(names),
        "tool_calls": {name: names.count(name) for name in sorted(set(names))},
        "tool_errors": sum(
            event["type"] == "tool_execution_end" and event["isError"] for event in events
        ),
        "input_tokens": sum(usage["input"] for usage in usages),
        "output_tokens": sum(usage["output"] for usage in usages) - reasoning,
        "reasoning_tokens": reasoning,
        "cache_read_tokens": sum(usage["cacheRead"] for usage in usages),
        "cache_write_tokens": sum(usage["cacheWrite"] for usage in usages),
        "total_tokens": sum(usage["totalTokens"] for usage in usages),
        "cost_usd": cost["total"],
        "cost": cost,
        "retries": {
            "count": len(retries),
            "max_attempts": max((event["maxAttempts"] for event in retries), default=0),
            "exhausted": bool(gave_up),
        },
        "output": "\n\n".join(text for text in texts if text),
        "thinking": "".join(
            block["thinking"] for block in blocks if block["type"] == "thinking"
        ),
    }


def row(name, one):
    """A line of the README's table."""
    tokens = "/".join(str(one[kind + "_tokens"]) for kind in (
        "input", "output", "reasoning", "cache_read", "cache_write", "total",
    ))
    calls = ", ".join(f"{tool} {count}" for tool, count in one["tool_calls"].items()) or "none"
    return (
        f"| {name} | {one['what']} | {one['num_turns']} | {tokens} | {one['cost_usd']:.7f} "
        f"| {calls} | {one['finish_reason']} |"
    )


def main(directory):
    """Writes both files."""
    totals = {}
    for listing in sorted(directory.glob("pi-*.runs.json")):
        version = listing.name.removesuffix(".runs.json")
        for scenario, run in json.loads(listing.read_text()).items():
            name = f"{version}.{scenario}"
            # Lines end at LF only: U+2028 is an ordinary character in JSON.
            lines = (directory / f"{name}.ndjson").read_text().split("\n")
            totals[name] = totals_of([json.loads(line) for line in lines if line], run)
    text = json.dumps(totals, indent=1, ensure_ascii=True)
    (directory / "totals.json").write_text(text + "\n")
    readme = directory / "README.md"
    head = readme.read_text().split(TABLE_START)[0]
    table = "\n".join(row(name, one) for name, one in totals.items())
    columns = "| file | what | turns | in/out/reasoning/read/write/total | USD | calls | finish |"
    readme.write_text(f"{head}{TABLE_START}\n\n{columns}\n|---|---|---|---|---|---|---|\n{table}\n")


main(Path(sys.argv[1] if len(sys.argv) > 1 else
          Path(__file__).parent.parent / "tests/fixtures/pi-json"))
