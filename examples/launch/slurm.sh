#!/usr/bin/env bash
#SBATCH --job-name=trueloop
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
#
#   sbatch slurm.sh images --data /data/photos --run /shared/runs/photos
#
# 300 s before the time limit SLURM sends SIGUSR1 to this script. It has every rank save and end,
# and puts the job back into the queue: it goes on where it was, as often as it takes. A job that
# was preempted, or whose host failed, SLURM puts back itself (--requeue).
set -uo pipefail

requeue=no
# shellcheck disable=SC2329  # called by the trap
again() {
    requeue=yes
    scancel --signal=TERM "$SLURM_JOB_ID"  # to torchrun on each host, not to this script
}
trap again USR1

export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=240  # seconds to save; torch before 2.12: always 30
# Else a host that joins later waits in vain for the address of the first rank (torch 2.13).
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
main=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun \
    --nnodes="$SLURM_NNODES" \
    --nproc-per-node="${SLURM_GPUS_ON_NODE:-1}" \
    --max-restarts=10 \
    --rdzv-backend=c10d \
    --rdzv-endpoint="$main:29400" \
    --rdzv-id="$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}" \
    -m -- trueloop train "$@" --resume auto &
step=$!

wait "$step"
status=$?
while kill -0 "$step" 2>/dev/null; do  # the signal has ended the wait, not the step
    wait "$step"
    status=$?
done
if [ "$requeue" = yes ] && [ "$status" -ne 0 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
