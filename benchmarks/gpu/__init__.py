"""What is to be measured on a GPU: one command each, results as JSON with date and device.

    make bench-gpu ARGS=spiral        # an update of a small network: eager, compiled, captured
    make bench-gpu ARGS=gpt           # GPT of 124M parameters, bf16: tokens/s and MFU
    make bench-gpu ARGS=resnet50      # ResNet-50 on synthetic images, bf16
    make bench-gpu ARGS=no_waits      # an update forces no synchronisation
    make bench-gpu ARGS=parity        # compiled and captured updates against eager ones
    make bench-gpu ARGS=watch         # what `trueloop watch` costs
    make bench-gpu ARGS=recompute     # memory and time of recomputed activations
    make bench-gpu ARGS=gains         # tf32, channels-last, cuDNN's choice by timing

Without a GPU each ends with one line and status 2.
"""
