#!/usr/bin/env bash
# One training on several hosts: run this on each of them, with the same arguments.
#
#   HOSTS=2 MAIN=node-a ./torchrun.sh images --data /data/photos --run /shared/runs/photos
#
# HOSTS     how many hosts train together; 1:2 begins with one and takes a second when it comes
# MAIN      the host where they meet, one of them (default: this one)
# PORT      the port there (default: 29400)
# RANKS     processes on this host (default: one for each GPU)
# JOB       a name for this training, the same on all hosts (default: trueloop)
# RESTARTS  how often the training starts again after a rank or a host was lost (default: 10)
# GRACE     seconds that the ranks have to save after SIGTERM (default: 60)
#
# The run directory and the data are on a disk that all hosts see.
set -euo pipefail

# What stands after -- is not torchrun's: Python before 3.12 would take --run for its --run-path.
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=${GRACE:-60}  # torch before 2.12: always 30
# Else a host that joins later waits in vain for the address of the first rank (torch 2.13).
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1

exec torchrun \
    --nnodes="${HOSTS:-1}" \
    --nproc-per-node="${RANKS:-gpu}" \
    --max-restarts="${RESTARTS:-10}" \
    --rdzv-backend=c10d \
    --rdzv-endpoint="${MAIN:-localhost}:${PORT:-29400}" \
    --rdzv-id="${JOB:-trueloop}" \
    -m -- trueloop train "$@" --resume auto
