"""What the miner costs: time and memory on a git history, points and requests at an emulated GitHub.

`python -m research.bench` prints a table with a goal and PASS or FAIL on each line.
"""
