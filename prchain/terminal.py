"""Printing lines that hold mined text."""

from __future__ import annotations

import re

import click

_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line breaks, and the marks that turn the direction of writing."""


def say(line: str = "", *, err: bool = False) -> None:
    """Print one line, whatever stands in it: mined text and git's words cannot steer a terminal or forge lines."""
    click.echo(_STEERING.sub(" ", line), err=err)


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the singular or the plural: ``1 chain``, ``1,204 chains``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
