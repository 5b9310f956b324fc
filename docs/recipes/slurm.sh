#!/bin/bash
# One shard of a run in each task of a Slurm array:  sbatch --array=0-15 slurm.sh EVALUATOR DATA
# When all tasks have ended:                         evaluator-host merge part-*.jsonl --out results.jsonl
#SBATCH --job-name=evaluate
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --output=evaluate-%a.log
set -euo pipefail

# The data directory is on the node's own disk. For evaluators with packages, choose a directory that all nodes share,
# so that the package set is installed only once.
export EVALUATOR_HOST_DATA_DIR="${EVALUATOR_HOST_DATA_DIR:-${TMPDIR:-/tmp}/evaluator-host-$USER}"

# Write to another name first, so that a requeued task leaves no file that looks complete.
part="part-$SLURM_ARRAY_TASK_ID.jsonl"
evaluator-host run "$1" --data "$2" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
  --parallelism "${SLURM_CPUS_PER_TASK:-2}" --out "$part.new" --json && code=0 || code=$?
if [ "$code" -le 1 ]; then # 1: some rows failed, and their results say why
  mv "$part.new" "$part"
  code=0
fi
exit "$code"
