"""From options to a scaffold."""

from __future__ import annotations

from prchain.errors import UsageError
from trajectories.options import RolloutOptions
from trajectories.scaffolds.scaffold import Scaffold

SCAFFOLDS = ("react", "mini")
"""The kinds of agents that there are."""


def make_scaffold(options: RolloutOptions) -> Scaffold:
    """The scaffold that the options name. Raises `UsageError` for one that is not there."""
    if options.scaffold == "react":
        from trajectories.scaffolds.agent import ReactScaffold  # noqa: PLC0415  a scaffold may need what others do not

        return ReactScaffold(
            tools=options.tools,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            context_tokens=options.context_tokens,
            overflow=options.overflow,
            observation_chars=options.observation_chars,
            command_timeout=options.command_timeout,
        )
    if options.scaffold == "mini":
        from trajectories.scaffolds.mini import MiniScaffold  # noqa: PLC0415  as above
        from trajectories.scaffolds.mini_package import SHOWN_CHARS  # noqa: PLC0415  as above

        if options.observation_chars != SHOWN_CHARS:
            raise UsageError(f"mini-swe-agent shows {SHOWN_CHARS:,} characters of an output, no other number")
        return MiniScaffold(
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            context_tokens=options.context_tokens,
            overflow=options.overflow,
            command_timeout=options.command_timeout,
        )
    raise UsageError(f"there is no scaffold {options.scaffold}; known are {', '.join(SCAFFOLDS)}")
