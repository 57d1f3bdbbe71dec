"""The lab: a line of the loop is moved, and what breaks is measured.

`claims` reads what is claimed, `running` runs the programs, `verdicts` decides, `pages` tells.
"""
