#!/bin/sh
# Scores a data file with an evaluator in a CI job, and writes a JUnit and a Markdown report. It exits as `evaluator-host run`
# does: with 0, or with 1 if rows failed, or if the mean is under FAIL_UNDER or more than MAX_DROP below the baseline.
#
# Environment:
#   EVALUATOR   the file of the evaluator (required)
#   DATA        the file of rows (required)
#   MAP         the column for each field of a row, separated by spaces: outputs=answer
#   FAIL_UNDER  the lowest mean
#   BASELINE    results of an earlier run (`evaluator-host run … --out FILE`); empty for a first run, which is not compared
#   MAX_DROP    the largest permitted drop of the mean from BASELINE
#   OPTIONS     further options of `evaluator-host run`: --package rapidfuzz==3.14.1
#   RESULTS     the folder for the files that are written (evaluator-results): results.jsonl, junit.xml, summary.md
set -eu
: "${EVALUATOR:?name the file of the evaluator}" "${DATA:?name the file of rows}"
results=${RESULTS:-evaluator-results}
mkdir -p "$results"
rm -f "$results/summary.md"

set -- run "$EVALUATOR" --data "$DATA" --out "$results/results.jsonl" --junit "$results/junit.xml" --markdown "$results/summary.md"
for field in ${MAP:-}; do set -- "$@" --map "$field"; done
[ -z "${FAIL_UNDER:-}" ] || set -- "$@" --fail-under "$FAIL_UNDER"
if [ -n "${BASELINE:-}" ]; then
  if [ ! -f "$BASELINE" ]; then
    echo "BASELINE: the file $BASELINE does not exist; make it with \`evaluator-host run … --out $BASELINE\`, or leave BASELINE empty for a first run" >&2
    exit 2
  fi
  set -- "$@" --baseline "$BASELINE"
  [ -z "${MAX_DROP:-}" ] || set -- "$@" --max-drop "$MAX_DROP"
elif [ -n "${MAX_DROP:-}" ]; then
  echo "MAX_DROP is not checked, because BASELINE is empty" >&2
fi

code=0
# shellcheck disable=SC2086 # OPTIONS is split into words
evaluator-host "$@" ${OPTIONS:-} || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$results/summary.md" ]; then cat "$results/summary.md" >>"$GITHUB_STEP_SUMMARY"; fi
exit "$code"
