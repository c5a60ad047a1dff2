#!/bin/bash
# task.sh N: line N of tasks.ndjson becomes results/N.json.
# Exit status: 0 it is there, 75 try the task again, 78 no task can be done like this.
set -uo pipefail
there=results/$1.json tries=tries/$1.ndjson own=tries/$1.$HOSTNAME.$$
settled() {                                  # by the last try, if that was the last one
  [ -s "$tries" ] || return 1
  case $(tail -n 1 "$tries" | jq -r .error_kind) in
    rate_limit | overloaded | network) most=4 ;;
    crash | timeout | drift) most=2 ;;
    *) most=1 ;;
  esac
  [ "$(wc -l < "$tries")" -ge "$most" ] &&
    jq -sc 'last + {tries: length, cost_usd: map(.cost_usd // 0) | add}' "$tries" > "$own" &&
    { ln "$own" "$there"; rm "$own"; }
}
if [ -e "$there" ] || settled; then exit 0; fi
task=$(sed -n "$1{p;q}" tasks.ndjson)
label=$(jq -r .label <<< "$task")
try=$(jq -j .prompt <<< "$task" |
  execd agent --model "${MODEL:-anthropic/claude-haiku-4-5}" --isolate --timeout 10m \
    --label "$label" --json - | jq -cR 'fromjson? | select(.event == "result") |
      {"label", success, finish_reason, error_kind, error, cost_usd, final_output}')
status=$?
if [ -z "$try" ]; then
  [ "$status" -gt 128 ] || exit 78           # nothing was run: stderr says why
  try=$(jq -cn --arg it "$label" '{"label": $it, success: false, error_kind: "crash"}')
fi
case $(jq -r '"\(.error_kind) \(.finish_reason)"' <<< "$try") in
  *" cancelled") exit "$status" ;;
  auth* | model_not_found* | not_started*) printf '%s\n' "$try" >&2; exit 78 ;;
esac
printf '%s\n' "$try" >> "$tries"
settled || exit 75
