"""The lab: a line of the loop is moved, and what breaks is measured.

`claims` reads the claims, `running` runs the programs, `verdicts` decides, `pages` writes pages.
"""
