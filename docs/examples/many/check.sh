#!/bin/bash
# check.sh: makes the directories, and prints true if each line of tasks.ndjson is one task.
mkdir -p results tries logs
jq -es --argjson lines "$(wc -l < tasks.ndjson)" \
  'length == $lines and all(.[] | .label, .prompt; type == "string" and . != "")' tasks.ndjson
