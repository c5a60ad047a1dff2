#!/bin/bash
# here.sh: the tasks on this machine, or where more flags of parallel say; eight at once on each.
export PAUSE=${PAUSE:-10}
seq "$(wc -l < tasks.ndjson)" |
  parallel -j 8 --retries 4 --halt soon,fail=1 --env PAUSE --env MODEL "$@" \
  'bash task.sh {} || { status=$?; sleep "$PAUSE"; exit "$status"; }'
