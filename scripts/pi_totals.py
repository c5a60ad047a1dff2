"""Adds up captured streams of pi, apart from execd: what its tests compare execd's results with.

    python3 scripts/pi_totals.py [DIR]        # by default tests/fixtures/pi-json

Reads DIR/pi-VERSION.runs.json and the streams beside it (see pi-extension/scripts/
capture-streams.ts); writes DIR/totals.json and the table of DIR/README.md. Summed is what pi's own
session statistics sum (getSessionStats of pi 1.5.2): the usage of assistant messages, of results of
tools, of compactions and branch summaries, and that of usage entries. With the json module and
nothing of execd.
"""

import json
import re
import sys
from pathlib import Path

FINISH = {
    "stop": "stop", "endTurn": "stop", "toolUse": "tool_calls", "maxTokens": "length",
    "length": "length", "refusal": "content_filter", "safety": "content_filter",
    "aborted": "error", "error": "error",
}
# What the provider's own word for the end says where pi's is only "error", or a new word.
RAW_FINISH = {
    "refusal": "content_filter", "safety": "content_filter", "content_filter": "content_filter",
    "length": "length", "max_tokens": "length",
}
# The fields of a usage, of all kinds of tokens.
TOKEN_KEYS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
# Tools whose first call is the first attempt at the task.
ATTEMPTS = ("write", "edit", "bash")
# Whom the scripted model is known by, where a run asked for nobody else.
ASKED = "fake/scripted"
COST_KEYS = {
    "input": "input", "output": "output", "cache_read": "cacheRead",
    "cache_write": "cacheWrite", "total": "total",
}
TABLE_START = "<!-- totals: written by scripts/pi_totals.py -->"


def usages_of(events):
    """Each usage that pi's session statistics count, once, in the order in which it was told."""
    for event in events:
        kind = event["type"]
        if kind == "message_end" and event["message"]["role"] == "assistant":
            yield event["message"]["usage"]
        elif kind == "message_end" and event["message"]["role"] == "toolResult":
            yield event["message"].get("usage")
        elif kind == "compaction_end":
            yield (event.get("result") or {}).get("usage")
        elif kind == "entry_appended":
            if event["entry"]["type"] in ("usage", "compaction", "branch_summary"):
                yield event["entry"].get("usage")


def compactions_of(events):
    """How often pi compacted, and how often it did not say what that has cost."""
    results = [
        event["result"] for event in events
        if event["type"] == "compaction_end" and event.get("result")
    ] + [
        event["entry"] for event in events
        if event["type"] == "entry_appended" and event["entry"]["type"] == "compaction"
    ]
    without = sum("usage" not in result for result in results)
    return {"count": len(results), "without_usage": without} if results else None


def finish_of(answer):
    """Why the run ended: pi's word, or the provider's where pi's says only that it failed."""
    finish = FINISH.get(answer["stopReason"])
    if finish in (None, "error"):
        finish = RAW_FINISH.get(answer.get("rawStopReason"), finish or answer["stopReason"])
    return finish


def is_other_model(answer, asked):
    """Whether another model has answered than the one that was asked."""
    provider, model = asked.split("/", 1)
    told = answer.get("responseModel", model)
    dated = re.fullmatch(re.escape(model) + r"-\d{4}-?\d\d-?\d\d", told)
    return (answer["provider"], answer["model"]) != (provider, model) or (
        told != model and not dated
    )


def text_of(answers):
    """The text of messages, a blank line between two blocks."""
    blocks = [block for answer in answers for block in answer["content"]]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return "\n\n".join(text for text in texts if text)


def totals_of(events, run):
    """What one run came to, under the names of agent_execute's result; None where it is absent."""
    asked = run.get("asked", ASKED)
    provider, model = asked.split("/", 1)
    answers = [
        event["message"] for event in events
        if event["type"] == "message_end" and event["message"]["role"] == "assistant"
    ]
    usages = [usage for usage in usages_of(events) if usage is not None]
    blocks = [block for answer in answers for block in answer["content"]]
    names = [block["name"] for block in blocks if block["type"] == "toolCall"]
    retries = [event for event in events if event["type"] == "auto_retry_start"]
    gave_up = [
        event for event in events
        if event["type"] == "auto_retry_end" and not event["success"]
    ]
    last = answers[-1] if answers else {}
    reasoning = sum(usage.get("reasoning", 0) for usage in usages)
    tokens = {key: sum(usage[key] for usage in usages) for key in TOKEN_KEYS}
    cost = {name: sum(usage["cost"][key] for usage in usages) for name, key in COST_KEYS.items()}
    finish = finish_of(last) if answers else "error"
    success = run["exit_code"] == 0 and finish in ("stop", "length", "tool_calls")
    if success and tokens["totalTokens"] == 0:
        success, finish = False, "wire_drift"
    return {
        "what": run["what"],
        "exit_code": run["exit_code"],
        "success": success,
        "finish_reason": finish,
        "raw_stop_reason": last.get("rawStopReason"),
        "session_id": next((event["id"] for event in events if event["type"] == "session"), None),
        "provider": provider,
        "model": model,
        "response_provider": last.get("provider"),
        "response_model": last.get("responseModel", last.get("model")),
        "model_mismatch": any(is_other_model(answer, asked) for answer in answers) or None,
        "num_turns": sum(event["type"] == "turn_start" for event in events),
        "tool_call_count": len(names),
        "tool_calls": {name: names.count(name) for name in sorted(set(names))},
        "tool_errors": sum(
            event["type"] == "tool_execution_end" and event["isError"] for event in events
        ),
        "first_attempt": next((name for name in names if name in ATTEMPTS), None),
        "input_tokens": tokens["input"],
        "output_tokens": tokens["output"] - reasoning,
        "reasoning_tokens": reasoning,
        "cache_read_tokens": tokens["cacheRead"],
        "cache_write_tokens": tokens["cacheWrite"],
        "total_tokens": tokens["totalTokens"],
        "cost_usd": cost["total"],
        "cost": cost,
        "compactions": compactions_of(events),
        "retries": {
            "count": len(retries),
            "max_attempts": max((event["maxAttempts"] for event in retries), default=0),
            "exhausted": bool(gave_up),
        },
        "output": text_of(answers),
        "final_output": text_of(answers[-1:]),
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
