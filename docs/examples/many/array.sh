#!/bin/bash
#SBATCH --job-name=tasks --output=logs/%A_%a.txt --open-mode=append --requeue --time=20
# array.sh: the task FIRST + SLURM_ARRAY_TASK_ID.
bash task.sh "$((FIRST + SLURM_ARRAY_TASK_ID))"
status=$?
case $status in
  75) scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" ;;
  78) scancel --state=PENDING "$SLURM_ARRAY_JOB_ID" ;;
esac
exit "$status"
