"""What prchain costs: time and memory on a git history, requests at an emulated GitHub, what caches serve of prompts.

`python -m research.bench` prints a table with a goal and PASS or FAIL on each line.
"""
