"""What README and docs tell people to type and to read exists, and every command explains itself."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from prchain.cli import COMMANDS, cli
from sql.named import named_queries

ROOT = Path(__file__).parents[1]

_CODE = re.compile(r"^```[^\n]*\n(.*?)^```|`([^`\n]+)`|((?:^    \S[^\n]*\n)+)", re.M | re.S)
_LINE = re.compile(r"(?:^|[\s;&|`(])(prchain|make)((?:[ \t]+[^\s|;&#<>]+)*)")
_TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.M)


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def pages() -> str:
    """README and the pages of docs/, one after the other."""
    return "\n\n".join([readme(), *(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/*.md")))])


def written() -> dict[str, str]:
    """Path to text of every page that people write."""
    paths = (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def typed(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every call of `prchain` and `make` in the code of a text, with its words."""
    for parts in _CODE.findall(text):
        for line in "".join(parts).splitlines():
            for program, rest in _LINE.findall(" " + line.partition(" # ")[0]):
                words = rest.split()
                yield program, [word.strip("'\"") for word in words]


def wrong_calls(text: str) -> list[str]:
    """The calls that name a command, an option, a query or a target that does not exist."""
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    wrong = []
    for program, words in typed(text):
        call = shlex.join([program, *words])
        names = [word for word in words if not word.startswith("-")]
        if program == "make":
            wrong += [call for word in names[:1] if "=" not in word and word not in targets]
        elif words and not words[0].startswith("-"):
            wrong += [call] if words[0] not in COMMANDS else _wrong_words(call, words)
    return wrong


def _wrong_words(call: str, words: list[str]) -> list[str]:
    words = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    click_command: click.Command = command(words[0])
    for word in words[1:]:
        if not isinstance(click_command, click.Group) or word.startswith("-"):
            break
        if word not in click_command.commands:
            return [call]
        click_command = click_command.commands[word]
    options = {option for parameter in click_command.params for option in parameter.opts} | {"--help", "-h"}
    wrong = [
        call for word in words[1:] if word.startswith("-") and word != "-" and word.partition("=")[0] not in options
    ]
    is_named_query = words[0] == "sql" and len(words) > 1 and re.fullmatch(r"[a-z_]+", words[1])
    return wrong + ([call] if is_named_query and words[1] not in named_queries() else [])


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def every_command() -> dict[str, click.Command]:
    """What a user types to its command; groups and their commands, however deep."""
    found: dict[str, click.Command] = {}

    def add(name: str, click_command: click.Command) -> None:
        found[name] = click_command
        if isinstance(click_command, click.Group):
            for sub, inner in click_command.commands.items():
                add(f"{name} {sub}", inner)

    for name in COMMANDS:
        add(name, command(name))
    return found


def help_of(name: str) -> str:
    with click.Context(every_command()[name], info_name=f"prchain {name}") as context:
        return every_command()[name].get_help(context)


@pytest.mark.parametrize("name", every_command())
def test_the_help_of_every_command_has_an_example_that_works_as_written(name: str) -> None:
    text = help_of(name)
    examples = re.findall(rf"^\s+(?:[A-Z_]+=\S+ )?(prchain {name}\b.*)$", text.partition("Example")[2], re.M)
    assert examples
    assert wrong_calls("".join(f"```\n{example}\n```\n" for example in examples)) == []


@pytest.mark.parametrize("name", every_command())
def test_every_option_of_every_command_is_explained(name: str) -> None:
    assert [
        option.name for option in every_command()[name].params if isinstance(option, click.Option) and not option.help
    ] == []


def test_the_help_of_the_group_lists_the_commands_and_calls_none_that_is_not_there() -> None:
    with click.Context(cli, info_name="prchain") as context:
        assert cli.list_commands(context) == list(COMMANDS)
    examples = [line.strip() for line in (cli.help or "").splitlines() if line.strip().startswith("prchain ")]
    assert examples
    assert wrong_calls("\n".join(f"`{example}`" for example in examples)) == []


def test_everything_that_readme_and_docs_tell_to_type_exists() -> None:
    calls = list(typed(pages()))
    assert any(program == "make" for program, _ in calls)
    assert wrong_calls(pages()) == []


def test_readme_and_docs_name_every_command() -> None:
    calls = [words for program, words in typed(pages()) if program == "prchain" and words]
    named = {" ".join(words[:depth]) for words in calls for depth in (1, 2, 3)}
    assert set(every_command()) - named == set()


def test_the_readme_is_short() -> None:
    assert len(readme().splitlines()) <= 150


def test_what_contributors_are_told_to_type_exists() -> None:
    text = written()["CONTRIBUTING.md"]
    assert {"check", "test", "lock"} <= {words[0] for program, words in typed(text) if program == "make" and words}
    assert wrong_calls(text) == []


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```|^(?:    .*\n)+|`[^`\n]*`", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """The anchors of a page: its headings, in GitHub's form."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Page and target of each link to a missing file, or to a missing heading."""
    dead = []
    for page, text in texts.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
            if target.startswith("https://"):
                continue
            file, _, anchor = target.partition("#")
            place = os.path.normpath(Path(page).parent / file) if file else page
            if not (ROOT / place).exists() or (anchor and anchor not in anchors(texts.get(place, ""))):
                dead.append((page, target))
    return dead


def test_links_between_pages_lead_somewhere() -> None:
    assert dead_links(written()) == []
    linked = set(re.findall(r"\]\((docs/[a-z-]+\.md)\)", readme()))
    assert {page for page in written() if page.startswith("docs/")} - linked == set()


@pytest.mark.parametrize("target", ["docs/nope.md", "docs/identity.md#nope", "#nope"])
def test_a_planted_link_to_nowhere_is_found(target: str) -> None:
    assert dead_links({**written(), "README.md": f"# A\n\nSee [it]({target})."}) == [("README.md", target)]


def test_lines_are_short_where_they_can_be() -> None:
    """Rows of tables cannot be broken."""
    assert [
        (page, line)
        for page, text in written().items()
        for line in text.splitlines()
        if len(line) > 120 and not line.startswith("|")
    ] == []


_FILE = re.compile(r"`((?:prchain|sql|miner|chains|environments|trajectories|tests|docs)/[\w./-]*)`")


def unknown_names(text: str) -> set[str]:
    """The names in our packages, ``package.module.name``, that a text has in backquotes and that stand in no file.
    With one dot it may be a table's column."""
    return {
        name
        for name, _ in re.findall(
            r"`((sql|miner|chains|environments|trajectories|research)(?:\.[a-z_]\w*)+\.\w+)`", text
        )
        if not _stands_in_a_file(name.split("."))
    }


def _stands_in_a_file(parts: list[str]) -> bool:
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if file.is_file():
            rest, text = parts[length:], file.read_text(encoding="utf-8")
            return not rest or re.search(rf"\b{rest[0]}\b", text) is not None
    return False


def test_names_in_our_packages_that_pages_and_comments_tell_are_there() -> None:
    assert unknown_names(pages() + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) == set()
    for package in ("sql", "miner", "chains", "environments", "trajectories"):
        for file in ROOT.joinpath(package).rglob("*.py"):
            assert unknown_names(file.read_text(encoding="utf-8")) == set(), file
    assert unknown_names("`sql.tables.Lineage` and `sql.nowhere.Name`, `chains.weights.gone`") == {
        "sql.nowhere.Name",
        "chains.weights.gone",
    }


def test_files_that_pages_name_are_there() -> None:
    named = {(page, name) for page, text in written().items() for name in _FILE.findall(text)}
    assert ("docs/architecture.md", "miner/landing.py") in named
    assert [pair for pair in sorted(named) if "NAME" not in pair[1] and not (ROOT / pair[1]).exists()] == []


@pytest.mark.parametrize(
    "call",
    [
        "prchain nope",
        "prchain chains nope",
        "prchain curate study nope",
        "prchain tasks list --nope",
        "prchain mine --nope",
        "prchain sql no_such_query",
        "make nope",
        "FOO=1 prchain nope",
    ],
)
def test_a_planted_call_of_what_is_not_there_is_found(call: str) -> None:
    assert len(wrong_calls(f"Run `{call}`.")) == 1
    assert len(wrong_calls(f"```sh\n# then\n{call}\n```")) == 1


@pytest.mark.parametrize(
    "call",
    [
        "prchain mine repos.txt --source git",
        "prchain sql funnel repository=o/n",
        "make mine REPOS=repos.txt",
        "prchain --help",
    ],
)
def test_a_call_of_what_is_there_passes(call: str) -> None:
    assert wrong_calls(f"`{call}`") == []
    assert len(list(typed(f"`{call}`"))) == 1
