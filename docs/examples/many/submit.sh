#!/bin/bash
# submit.sh: an array for each 1,000 tasks, of those that have no result yet.
total=$(wc -l < tasks.ndjson)
for ((first = 0; first < total; first += 1000)); do
  missing=$(for ((n = 1; n <= 1000 && first + n <= total; n++)); do
    [ -e "results/$((first + n)).json" ] || echo "$n"
  done | paste -sd,)
  [ -z "$missing" ] || sbatch --array="$missing%50" --export="ALL,FIRST=$first" array.sh || exit
done
