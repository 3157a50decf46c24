#!/bin/sh
# record-flaky.sh NAME RUNS COMMAND [ARGUMENT...]
#
# Runs a test so many times under the recorder, keeps the first recording that failed, or else the
# last that passed, and sends it to the engine of the environment's DIAGNOSE_ENGINE or, without one,
# to the corpus of DIAGNOSE_CORPUS. Its labels say of which commit and job it is, how often the test
# ran and how often it failed: 'diagnose serve' makes rates of them. The status is 1 if a run failed.
set -eu
name=$1 runs=$2
shift 2
commit=${GITHUB_SHA:-${CI_COMMIT_SHA:-$(git rev-parse HEAD)}}
job=${GITHUB_RUN_ID:-${CI_JOB_ID:-$(hostname)-$$}}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

kept= failed=0 run=0
while [ "$run" -lt "$runs" ]; do
  run=$((run + 1))
  status=0
  # --portable: what replays it elsewhere is in it.
  diagnose record --all --portable --output "$dir/$run" -- "$@" || status=$?
  if [ -z "$(ls "$dir/$run" 2>/dev/null)" ]; then
    echo "record-flaky: run $run was not recorded (status $status)" >&2
    exit 2
  fi
  if [ "$status" -ne 0 ]; then
    failed=$((failed + 1))
  fi
  if [ "$status" -ne 0 ] && [ "$failed" -eq 1 ] || [ "$failed" -eq 0 ]; then
    rm -rf "${kept:-$dir/none}"
    kept=$dir/$run
  else
    rm -rf "${dir:?}/$run"
  fi
done
echo "record-flaky: $name failed in $failed of $runs runs"

corpus=$dir/corpus
if [ -z "${DIAGNOSE_ENGINE:-}" ]; then
  corpus=$DIAGNOSE_CORPUS
fi
diagnose corpus add --corpus "$corpus" --move "$kept"/* --label test="$name" --label commit="$commit" --label job="$job-$name" --label runs="$runs" --label failed="$failed"
if [ -n "${DIAGNOSE_ENGINE:-}" ]; then
  diagnose corpus push --corpus "$corpus"
fi
[ "$failed" -eq 0 ]
