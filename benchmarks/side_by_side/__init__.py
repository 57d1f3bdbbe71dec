"""Training loops side by side: ours, the loop by hand, other trainers, and the bare computation.

    make bench                                  # all workloads
    make bench ARGS="spiral gpt --rounds 7"     # some of them
    make bench ARGS="--quick"                   # every part once, in small: no figures to keep

Each contender is a process of its own (`contender`), made once, so that its peak memory is its own
and that importing it is no part of its time. The contenders of a workload take turns: a round asks
each for one measurement, so that the machine's drift meets all of them. Figures are medians over
rounds, ratios the medians of each round's own ratios. A contender that is not installed, or that
refuses the workload, is left out with a line that says why.
"""
