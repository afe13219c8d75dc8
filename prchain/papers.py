"""The papers' own settings of each command, by the name of the paper: ``prchain --as-paper NAME COMMAND``.

Only numbers and choices that a paper names. They are taken as `prchain.toml` gives options to commands, so a result's
identity follows from them and never from the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from prchain.core.cli_options import BEFORE
from prchain.core.console.terminal import say
from prchain.core.errors import UsageError
from prchain.core.keyed import KeyedOption, written

PAPERS = ("davinci", "p2t", "swe-prm")


class PaperSetting(NamedTuple):
    """A setting that a paper names."""

    paper: str
    command: str
    flag: str
    key: str | None
    """Of a flag that holds several."""
    value: Any
    section: str
    """Of the paper, where it stands."""


def _of(
    paper: str, command: str, section: str, flag: str, value: Any = None, /, **keys: Any
) -> tuple[PaperSetting, ...]:
    if not keys:
        return (PaperSetting(paper, command, flag, None, value, section),)
    return tuple(PaperSetting(paper, command, flag, key, one, section) for key, one in keys.items())


SETTINGS: tuple[PaperSetting, ...] = (
    *_of("davinci", "chains build", "3.2, equation 2", "--strategy", "reference"),
    *_of("davinci", "chains build", "1: up to five", "--max", 5),
    *_of("davinci", "chains build", "4.2", "--floor", 0.0),
    *_of("davinci", "tasks build", "4.2, appendix C", "--names", "withheld"),
    *_of("davinci", "tasks export", "4.2, appendix C", "--interface", "paper"),
    *_of("davinci", "rollouts run", "4.2, appendix C", "--interface", "paper"),
    *_of("davinci", "rollouts run", "4.3", "--gate", gate="judge", threshold=0.8, sees="patches"),
    *_of("davinci", "rollouts run", "4.3", "--refinements", 3),
    *_of("davinci", "rollouts run", "4.3, equation 4", "--carry", "agent"),
    *_of("davinci", "export", "3.3, equation 3", "--rejected", "keep"),
    *_of("davinci", "export", "3.3, equation 3", "--mask", "faulty=off"),
    *_of("davinci", "export", "appendix E", "--format", "slime"),
    *_of("davinci", "export", "appendix E", "--recipe", "slime"),
    *_of("p2t", "curate graphs", "appendix D", "--rounds", rounds=6, empty_rounds=2, tool_calls=40),
    *_of("p2t", "curate run", "appendix H", "--windows", window=10, stride=5, seeds=2, variants=1),
    *_of("p2t", "curate run", "appendix H", "--windows", est="prefix"),
    *_of("p2t", "curate run", "appendices H, I", "--windows", floor=0.5),
    *_of("p2t", "curate run", "4.1; appendix G", "--windows", premature="zero"),
    *_of("p2t", "curate run", "appendix F", "--windows", pick="model"),
    *_of("p2t", "curate run", "3.3", "--windows", length="tokens", commit="shortest"),
    *_of("p2t", "curate run", "4.2", "--windows", ground=True),
    *_of("p2t", "curate run", "appendix G", "--windows", empty="usual"),
    *_of("p2t", "curate run", "5.1", "--stage-limits", steps=100),
    *_of("p2t", "curate study coverage", "appendices C, H", "--est", "prefix"),
    *_of("p2t", "curate study disclosure", "appendix C", "--stage-limits", steps=100),
    *_of("p2t", "rollouts run", "3.2, 5.1", "--gate", gate="tests"),
    *_of("p2t", "rollouts run", "3.2", "--refinements", 0),
    *_of("p2t", "rollouts run", "5.1", "--min-length", 1),
    *_of("p2t", "rollouts run", "5.1", "--stage-limits", steps=100),
    *_of("p2t", "export", "appendix J", "--mask", "faulty=off"),
    *_of("p2t", "export", "appendix J", "--format", "swift"),
    *_of("p2t", "export", "appendix J", "--recipe", "swift"),
    *_of("p2t", "export", "appendix J", "--max-tokens", max_tokens=131_072),
    *(
        setting
        for command in ("rollouts run", "prm sweep")
        for setting in (
            *_of("swe-prm", command, "4.2", "--agent", temperature=0.0, top_p=1.0),
            *_of("swe-prm", command, "3.1", "--tools", "swe-agent"),
            *_of("swe-prm", command, "listing 1", "--agent", calls="text", shell="swe-agent"),
            *_of("swe-prm", command, "4.2", "--stage-limits", steps=75),
            *_of("swe-prm", command, "4.2", "--prm", every=5, window=8),
            *_of("swe-prm", command, "listings 3-6", "--prm", evidence="any", rules="paper"),
            *_of("swe-prm", command, "3.2.2", "--prm", words="raw"),
            *_of("swe-prm", command, "4.3", "--gate", gate="tests"),
            *_of("swe-prm", command, "4.2", "--refinements", 0),
        )
    ),
    *_of("swe-prm", "rollouts run", "4.1", "--min-length", 1),
)


def commands_of(paper: str) -> dict[str, dict[str, dict[str | None, Any]]]:
    """Command to flag to the paper's values: by key, or under None. `paper` is one of `PAPERS`."""
    found: dict[str, dict[str, dict[str | None, Any]]] = {}
    for one in SETTINGS:
        if one.paper == paper:
            found.setdefault(one.command, {}).setdefault(one.flag, {})[one.key] = one.value
    return found


def lay_in(paper: str, group: click.Group, context: click.Context, invoked: str) -> None:
    """Make the paper's settings the defaults of the command that was invoked, over those of `prchain.toml`, and have it
    say them before it runs. Raises `UsageError` for a command of which the paper names no setting."""
    commands = commands_of(paper)
    if all(words.split()[0] != invoked for words in commands):
        raise _no_setting(paper, invoked)
    defaults: dict[str, Any] = dict(context.default_map or {})
    for words, flags in commands.items():
        if words.split()[0] == invoked and (command := _command(group, context, words)) is not None:
            place = defaults
            for word in words.split():
                place[word] = dict(place.get(word, {}))
                place = place[word]
            for name, value in _values(command, flags).items():
                before = place.get(name)
                place[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    context.default_map = defaults
    context.meta[BEFORE] = lambda command: _say(paper, command)


def _command(group: click.Group, context: click.Context, words: str) -> click.Command | None:
    found: click.Command | None = group
    for word in words.split():
        found = found.get_command(context, word) if isinstance(found, click.Group) else None
    return found


def _values(command: click.Command, flags: Mapping[str, Mapping[str | None, Any]]) -> dict[str, Any]:
    """Parameter to value, as `click.Context.default_map` has them."""
    params = {flag: param for param in command.params for flag in param.opts}
    return {
        str(params[flag].name): dict(values) if isinstance(params[flag], KeyedOption) else values[None]
        for flag, values in flags.items()
    }


def _say(paper: str, context: click.Context) -> None:
    """Say what the command has of the paper, before it runs."""
    words = context.command_path.partition(" ")[2]
    flags = commands_of(paper).get(words)
    if flags is None:
        raise _no_setting(paper, words)
    say(f"as in {paper}: {words_of(flags)}", err=True)
    params = {flag: str(param.name) for param in context.command.params for flag in param.opts}
    given = [flag for flag in flags if context.get_parameter_source(params[flag]) is ParameterSource.COMMANDLINE]
    if given:
        say(f"  what the command line says goes before: {', '.join(given)}", err=True)


def _no_setting(paper: str, words: str) -> UsageError:
    return UsageError(f"{paper} names no setting of `{words}`; it does of {', '.join(commands_of(paper))}")


def words_of(flags: Mapping[str, Mapping[str | None, Any]]) -> str:
    """A paper's settings of a command as they are typed."""
    parts = []
    for flag, values in flags.items():
        head = flag.removeprefix("--").replace("-", "_")  # the value that has no name, if the flag has one
        first = [written(value) for key, value in values.items() if key in (None, head)]
        keyed = ",".join(f"{key}={written(value)}" for key, value in values.items() if key not in (None, head))
        parts.append(f"{flag} {':'.join([*first, *([keyed] if keyed else [])])}")
    return " ".join(parts)
