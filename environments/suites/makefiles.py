"""What the targets of a ``Makefile`` start, as scripts of a ``package.json`` that call one another.

Pure. Nothing is run: variables are replaced where they are plain, and what only make could work out is left out.
"""

from __future__ import annotations

import re

MAKEFILE = "Makefile"
CALL = "make"
"""The program that starts targets, and the first word of the names that they have as scripts."""

# Files are hostile: what is read of them, and every repetition, is bounded.
_MOST = 100_000
_LONGEST = 2_000
_MOST_TARGETS = 100
_VARIABLE = re.compile(r"([A-Za-z_][\w.-]{0,60})[ \t]{0,20}(?::{1,2}|\?|\+)?=[ \t]{0,20}(.*)")
_RULE = re.compile(r"([A-Za-z0-9_][\w ./-]{0,200}?)[ \t]{0,20}::?(?!=)([^#=]{0,500})")
_USE = re.compile(r"\$[({](\w[\w.-]{0,60})[)}]")
_WORKED_OUT = re.compile(r"\$[({][^(){}]{0,300}[)}]|\$\S")


def targets(text: str) -> dict[str, str]:
    """The targets of a makefile by the names ``make TARGET``, and ``make`` for the first, each as one line of shell:
    first those that it depends on, then its own commands."""
    lines = re.sub(r"\\\r?\n[ \t]{0,100}", " ", text[:_MOST]).splitlines()
    values: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    open_targets: list[str] = []
    for line in lines:
        if line.startswith("\t"):
            for name in open_targets:
                found[name].append(line.strip().lstrip("@-+ "))
        elif variable := _VARIABLE.fullmatch(line.strip()):
            values.setdefault(variable[1], variable[2].partition(" #")[0].strip())
        elif rule := _RULE.match(line):
            open_targets = rule[1].split()[:10]
            for name in open_targets:
                needed = [f"{CALL} {it}" for it in rule[2].partition(";")[0].split() if it != name]
                found.setdefault(name, []).extend(needed)
        elif line.strip() and not line.startswith("#"):
            open_targets = []
    lines_of = {name: _line(commands, values) for name, commands in list(found.items())[:_MOST_TARGETS]}
    named = {f"{CALL} {name}": line for name, line in lines_of.items()}
    return {**named, CALL: next(iter(lines_of.values()))} if lines_of else {}


def _line(commands: list[str], values: dict[str, str]) -> str:
    line = " && ".join(it for it in commands if it and not it.startswith("#"))
    for _ in range(3):
        line = _USE.sub(lambda use: values.get(use[1], ""), line[:_LONGEST])
    return _WORKED_OUT.sub("", line[:_LONGEST])
