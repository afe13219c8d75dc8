"""The page `docs/options.md`: the options that a class tells, from the words beside their fields.

`python -m research.options_page > docs/options.md` writes it anew; a test compares it with what stands there.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import click

from prchain.cli import cli
from prchain.core.cli_options import ToldOption
from prchain.core.keyed import KeyedOption, KeyedType, takes, written
from prchain.core.told import ToldKey
from prchain.papers import PAPERS, SETTINGS, commands_of, words_of

_HEAD = """\
# Options

What `python -m research.options_page` prints of the classes that tell options; change the words there. `--help` of a
command has all of its options; here are those that decide a result, and who needs them.

A flag that takes `KEY=VALUE,...` holds several: `--stage-limits steps=40,usd=2`. Some have a value of their own in
front, as an observer has: `--gate both:threshold=0.9`, `--prm D:every=5,window=8`, and do without it:
`--gate threshold=0.9`. `help` in the place of the value prints the keys, the shell completes them, and a key that is
spelt wrongly is told the nearest. A flag that is given twice has the keys of both.

`prchain.toml` can hold them for a command, in a table of its name. What the command line says goes before:

```toml
[defaults.rollouts.run]
on_fail = "continue"
gate = "both:threshold=0.9"
agent = { context_tokens = 65536, overflow = "elide" }
```

With `--json` a dry run tells which options are not at their default.
"""

_PAPERS_HEAD = """\
## As in the papers

`--as-paper NAME`, before a command, gives it the settings that a paper names for it: daVinci-Agency (`davinci`), P2T
(`p2t`), SWE-PRM (`swe-prm`). It says them before it runs. What the command line says goes before, key by key; what
`prchain.toml` says comes after. Results are told by their settings, so they are the same ones that the options make
when they are spelt out. A list, such as `--mask`, goes before as a whole. A command that is not in the table is
refused. `swe-prm` makes every `rollouts run` a guided one, by variant D unless `--prm` names another; `prm sweep` has
`base`, too. Sampling of proposer, critic, curator and readers is the paper's already, unless `[purposes.NAME]` says
otherwise; models, prompts and scaffolds are yours to choose.
"""


@dataclass(frozen=True, slots=True)
class ShownCommand:
    """A command with the words that call it."""

    words: str
    command: click.Command
    context: click.Context

    @property
    def options(self) -> list[click.Option]:
        """Its options, but for `--help`."""
        return [param for param in self.command.params if isinstance(param, click.Option) and not param.hidden]

    @property
    def help_lines(self) -> int:
        """The lines of its help page, in a terminal of 80 columns."""
        return len(self.command.get_help(self.context).splitlines())


def all_commands() -> list[ShownCommand]:
    """Every command that does something."""
    context = click.Context(cli, info_name="prchain", terminal_width=80, max_content_width=80)
    return list(_below(cli, context, ()))


def _below(command: click.Command, context: click.Context, words: tuple[str, ...]) -> Iterator[ShownCommand]:
    if not isinstance(command, click.Group):
        yield ShownCommand(" ".join(words), command, context)
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        inner = click.Context(child, info_name=name, parent=context, terminal_width=80, max_content_width=80)
        yield from _below(child, inner, (*words, name))


def page() -> str:
    """The whole page."""
    blocks = [_HEAD]
    for flag, (keyed, users) in _flags().items():
        words = textwrap.fill(f"{keyed.help_of_place} Of {_list(sorted(users))}.", 120, break_on_hyphens=False)
        blocks.append(f"## {flag}\n\n{words}\n\n{_table(keyed.type)}")
    rows = [
        f"| `{flag}` | {_list(sorted(users))} | {option.key.told.help} | {option.key.told.why} |\n"
        for flag, (option, users) in _plain().items()
    ]
    head = "| option | of | what | who needs it |\n|---|---|---|---|\n"
    blocks.append(f"## Without keys\n\n{head}{''.join(rows)}")
    blocks.append(_papers())
    return "\n".join(blocks)


def _papers() -> str:
    """What `--as-paper` stands for."""
    rows = "".join(
        f"| `{paper}` | `{command}` | `{words_of({flag: keys})}` | {_sections(paper, command, flag)} |\n"
        for paper in PAPERS
        for command, flags in commands_of(paper).items()
        for flag, keys in flags.items()
    )
    return (
        f"{_PAPERS_HEAD}\n| paper | command | what it stands for | where the paper says so |\n|---|---|---|---|\n{rows}"
    )


def _sections(paper: str, command: str, flag: str) -> str:
    found = (one.section for one in SETTINGS if (one.paper, one.command, one.flag) == (paper, command, flag))
    return "; ".join(dict.fromkeys(found))


def _flags() -> dict[str, tuple[KeyedOption, list[str]]]:
    """Flag to the option with the most keys of it, and the commands that have it."""
    found: dict[str, tuple[KeyedOption, list[str]]] = {}
    for one in all_commands():
        for option in one.options:
            if isinstance(option, KeyedOption):
                flag = option.opts[0]
                before, users = found.get(flag, (option, []))
                found[flag] = (max(before, option, key=_fullness), [*users, one.words])
    return found


def _fullness(option: KeyedOption) -> tuple[int, int]:
    keys = option.type.every
    return len(keys), sum(key.default is not None for key in keys)


def _plain() -> dict[str, tuple[ToldOption, list[str]]]:
    found: dict[str, tuple[ToldOption, list[str]]] = {}
    for one in all_commands():
        for option in one.options:
            if isinstance(option, ToldOption):
                before, users = found.get(option.opts[0], (option, []))
                found[option.opts[0]] = (before, [*users, one.words])
    return found


def _table(kind: KeyedType) -> str:
    rows = "".join(
        f"| {'' if key is kind.head else f'`{key.name}`'} | {takes(key).replace('|', ', ')} | {_bounds(key)} "
        f"| {key.told.help} | {key.told.why} |\n"
        for key in kind.every
    )
    return f"| key | value, the default first | from, to | what | who needs it |\n|---|---|---|---|---|\n{rows}"


def _bounds(key: ToldKey) -> str:
    told = key.told
    least = "" if told.least is None else f"{'above ' * told.above}{written(float(told.least))}"
    most = "" if told.most is None else f"{'below ' * told.below}{written(float(told.most))}"
    return ", ".join(filter(None, (least, most)))


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    """Print the page."""
    print(page(), end="")


if __name__ == "__main__":
    main()
