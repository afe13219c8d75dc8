"""Every command line of README and docs can be read, and runs, in a copy of a finished demo's folder.

Of the lines of a rule `make test` runs one in six, at least one; `make test-all` runs all of them. None of them costs
money, needs the network, or takes long. `PLACES` has what a reader fills in, `RULES` the additional arguments of a
command and what it must print. A command line without a rule fails.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import click
import pytest
from _pytest.mark.structures import ParameterSet
from sqlalchemy import update

from environments.images.recipes import override_name
from prchain.cli import cli, run
from prchain.core.settings import FILE, Settings, variable
from prchain.demo.library import REPOSITORY
from prchain.demo.run import MODEL_VARIABLE
from prchain.papers import PAPERS
from sql.store import Store
from sql.tables import Repository
from tests.samples import drawn
from tests.test_docs import ROOT, every_command, pages, readme
from tests.trajectories.demoworld import Ran

PLACES = {
    "LIST": "repos.txt",
    "my-repos.txt": "repos.txt",
    "OWNER/NAME": REPOSITORY,
    "[OWNER/NAME]": REPOSITORY,
    "pallets/click": REPOSITORY,
    "OWNER/NAME#N": f"{REPOSITORY}#8",
    "OWNER/NAME[#N]": REPOSITORY,
    "pallets/click#2622": f"{REPOSITORY}#8",
    "pallets/itsdangerous#210": f"{REPOSITORY}#8",
    "FILE": "file.jsonl",
    "NAME": "funnel",
    "N": "30",
    "FORMAT": "openai",
    "URL": "sqlite:///prchain.db",
    "SELECT ...": "SELECT number FROM landed_pull_requests",
}
"""Placeholder in README and docs to its value here."""

LOCAL = ("--backend", "unsafe-local", "--unsafe-local")


@dataclass(frozen=True)
class Rule:
    """How a command is run, and the pattern that its output fits.

    `adds` is appended to its words and `replaces` some of them, for the reason in `why`; `wants` is its argument where
    a sentence only names the command. CHAIN and TRAJECTORY are the first characters of an id. With `engine` it runs
    only with a Docker engine; elsewhere its words are only parsed. `ends` are the exit codes it may have. The lines of
    a `lasting` rule run in one folder, so that what one has made the next finds done, and not each in its own.
    """

    says: str
    adds: tuple[str, ...] = ()
    wants: str | None = None
    replaces: Mapping[str, str] = field(default_factory=dict)
    engine: bool = False
    ends: tuple[int, ...] = (0,)
    lasting: bool = False
    why: str = ""


OF_CHAIN = {"1f0c": "CHAIN", "5f0c": "CHAIN", "ID": "CHAIN"}
OF_TRAJECTORY = {"81c2": "TRAJECTORY", "ID": "TRAJECTORY"}

RULES = {
    "": Rule("Commands:", wants="--help"),
    "demo": Rule("Done in", ("--folder", ".", "--backend", "unsafe-local"), why="it was run, and finds all done"),
    "mine": Rule("14 pull requests, 13 landed"),
    "status": Rule(r"landed +13\n"),
    "show": Rule(r"landed \(merge on main", wants="OWNER/NAME#N"),
    "chains build": Rule(r"(8|10) of 13 landed pull requests in chains"),
    "chains list": Rule("4 of 4 chains"),
    "chains yield": Rule(r"reference \*", wants="[OWNER/NAME]"),
    "chains lineage": Rule(r"landed pull requests +13\n", wants="OWNER/NAME[#N]"),
    "chains show": Rule("builds on the one before", wants="ID", replaces=OF_CHAIN),
    "chains show --reference": Rule("^diff --git a/", replaces={**OF_CHAIN, "N": "1"}),
    "tasks build": Rule("[34] done before|0 tasks to write"),
    "tasks build --review": Rule("[34] done before|[34] ready; 0 done before|0 tasks to write"),
    "tasks list": Rule("4 tasks, 4 ready"),
    "tasks show": Rule("#4", replaces=OF_CHAIN),
    "tasks export": Rule("4 tasks written"),
    "tasks export --format": Rule(
        "no instance to write", ends=(1,), why="the demo's stages have no images of their own"
    ),
    "tasks export --steps": Rule(
        "left out, tests_unproved|left out, proof_outdated",
        ends=(1,),
        engine=True,
        why="the demo's stages were proved without images",
    ),
    "tasks import": Rule(
        "there is no file or folder|does not exist", wants="tasks.jsonl", ends=(2,), why="the demo holds no data set"
    ),
    "evaluate": Rule("Pass@1|no rollout over these tasks has ended", ends=(0, 1), why="nothing was imported"),
    "evaluate --predictions-from": Rule("there is no file", LOCAL, ends=(2,), why="plain processes are everywhere"),
    "environments validate": Rule(
        "1 proved|1 done before",
        (*LOCAL, "--chain", "CHAIN", "--runs", "2"),
        lasting=True,
        why="plain processes are everywhere, each stage takes seconds, and the demo has made one run",
    ),
    "environments validate --stage-images": Rule(
        "1 proved", ("--chain", "CHAIN", "--runs", "1"), engine=True, why="each stage takes seconds"
    ),
    "environments survey": Rule(
        r"\d landings? with tests drawn", (*LOCAL, "--dry-run"), why="a landing takes seconds, and others count chains"
    ),
    "environments build": Rule("1 image .* 0 failed", engine=True),
    "environments list": Rule("images?,", engine=True),
    "environments interpreters": Rule("the base image", engine=True),
    "environments show": Rule(r"stage 1 .* proved in(.|\n)*F2P [1-9]", wants="ID", replaces=OF_CHAIN),
    "environments prune": Rule(r"images? removed", engine=True),
    "environments gc": Rule("", engine=True),
    "environments base": Rule(
        "debootstrap", ("--help",), why="takes minutes, as root; .ci/run makes its base image with it"
    ),
    "rollouts run": Rule(
        "[12] (accepted|rejected)|rollouts? to run|; 1 done before",
        (*LOCAL, "--chain", "CHAIN"),
        replaces={"4": "2"},
        ends=(0, 1),
        lasting=True,
        why="each takes seconds, and the script has accepted answers only for what the demo asks",
    ),
    **{
        f"rollouts run {option}": Rule(
            "rollouts? to run", (*LOCAL, "--chain", "CHAIN", "--dry-run"), why="each takes seconds; two others are made"
        )
        for option in ("--samples", "--limit", "--observer", "--prm")
    },
    "rollouts run --scaffold": Rule(
        "rollouts? to run",
        (*LOCAL, "--chain", "CHAIN", "--dry-run"),
        why="agent programs are not there; tests/trajectories/test_programs.py runs one",
    ),
    "rollouts install": Rule(
        "there is no agent program 'no-such-agent'",
        LOCAL,
        replaces=dict.fromkeys(("opencode", "NAME"), "no-such-agent"),
        ends=(2,),
        why="no registry is asked; tests/trajectories/test_programs.py installs one",
    ),
    "rollouts run --on-fail": Rule(
        "rollouts? to run",
        (*LOCAL, "--chain", "CHAIN", "--dry-run"),
        why="the script knows no agent that goes on after a rejection",
    ),
    "rollouts extend": Rule("prefix", (*LOCAL, "--dry-run"), why="plain processes are everywhere"),
    "rollouts import": Rule("there is no file", ends=(2,), why="the demo holds no documents of others"),
    "rollouts list": Rule("7 trajectories, 4 accepted, 3 rejected"),
    "rollouts show": Rule(
        "accepted|diff --git|changed no file", replaces={**OF_TRAJECTORY, "N": "1"}, why="every rollout has a step"
    ),
    "rollouts audit": Rule('audited: no sign of cheating|findings? in|"with_a_sign"', replaces=OF_TRAJECTORY),
    "record": Rule(
        "no-such-agent cannot be started",
        wants="no-such-agent",
        replaces=dict.fromkeys(("mini", "env", "COMMAND"), "no-such-agent"),
        ends=(1,),
        why="agent programs are not there; tests/trajectories/test_recording.py records one",
    ),
    "curate graphs": Rule("graphs? to make", (*LOCAL, "--dry-run"), why="the script knows one stage"),
    "curate graphs --from": Rule(
        "accepted no stage", LOCAL, replaces=OF_TRAJECTORY, ends=(1,), why="plain processes are everywhere"
    ),
    "curate run": Rule(
        "trajector(y|ies) to make|trajectory to make",
        ("--backend", "local", "--dry-run"),
        replaces={"5f0c": "CHAIN"},
        ends=(0,),
        why="plain processes take no snapshots",
    ),
    "curate list": Rule("1 graph, 1 converged|0 trajectories"),
    "curate show": Rule("15 nodes", wants="GRAPH", replaces={"3f9a": "GRAPH", "81c2": "GRAPH"}),
    "curate study nodes": Rule("15 nodes"),
    "curate study quality": Rule("0 pairs"),
    "curate study windows": Rule("no curated trajectory"),
    "curate study baselines": Rule(r"test-pass +6 +3 "),
    "curate study coverage": Rule("plain rollouts? to read", ("--dry-run",), why="the script holds no such answers"),
    "curate study disclosure": Rule(
        "rollouts? to run", (*LOCAL, "--dry-run"), why="the script knows no such agents; plain processes are everywhere"
    ),
    "prm replay": Rule("Nothing has been asked", ("--dry-run",), why="the script knows no process reward model"),
    "prm compare": Rule("there is no replay 'D'", ends=(2,)),
    "prm sweep": Rule("Nothing has been asked", (*LOCAL, "--dry-run"), why="the script knows no such agents"),
    "prm report": Rule("no rollout|nothing|left out|guid"),
    "prm labels": Rule("rows? written"),
    "judge calibrate": Rule("160 calls to the judge", ("--dry-run",), why="the script holds no such verdicts"),
    "papers run": Rule(
        "prchain papers table|does not exist",
        ("--dry-run",),
        ends=(0, 2),
        why="no pool is there; tests/prchain/comparisons runs them",
    ),
    "papers table": Rule("table [12]|there is no file", LOCAL, ends=(0, 2), why="plain processes are everywhere"),
    "view": Rule("files, .* MB; open pages", ("--out", "pages"), why="without it, it serves until Ctrl-C"),
    "view --export": Rule("files, .* MB; open pages", replaces={"sft.jsonl": "samples.jsonl"}),
    "view --label": Rule("Example:", ("--help",), why="it serves until Ctrl-C; test_labels.py marks"),
    "export": Rule("3 samples"),
    "export --labels": Rule("4 unlabelled", ends=(1,), why="nobody has read the demo's chains"),
    "export --format swebench": Rule(
        "9 predictions", ("--predictions", "like=TRAJECTORY"), why="the demo's agents have two sets of options"
    ),
    "export --pairs short-long": Rule("no pair differs", ends=(1,)),
    "export --pairs rejection-sampling": Rule("4 for unfiltered, 4 for filtered"),
    "stats": Rule("4 accepted, 3 rejected"),
    "stats --by": Rule("USD of all purposes(.|\n)*domains +covered"),
    "sql": Rule("funnel|landed|number|purpose|decided_by|replaced|outcome"),
}
"""Command to how it is run."""

OF_THE_GROUP = {"-v": 0, "-vv": 0, "--log-file": 1, "--as-paper": 1}
"""Option before a command to the number of words it takes."""

MODULES = {
    "prchain": r"Commands:.*\bdemo\b",
    "research.precision": "strict 86.2%.*with borderline 95.4%",
    "research.chain_reading": "every step real 80.6%",
    "research.task_reading": r"every, screened +106 .* 4\.40 .*\n *2 +8 +16 +16 ",
    "research.leaks": r"held_out.*precision 28/30 = .*recall +28/28 = ",
    "research.audit_precision": r"second: 20 .*precision 100.0%.*asked first: precision 10/11",
    "research.optimality": "all: average 0.9",
    "research.tables_page": "^# Tables\n",
    "research.options_page": "^# Options\n",
    "research.prompts_page": "^# Prompts\n",
}
"""Module that is run as a program to a pattern of its output, which the docs quote."""

ELSEWHERE = {
    "make check": (".ci/run", "make check"),
    "make help": ("Makefile", "help: ##"),
    "python -m research.bench": ("tests/research/test_bench.py", "main(["),
    "make test": (".ci/run", "make test\n"),
    "make test-fast": ("Makefile", "-m tests.fast $(ARGS)"),
    "make test-all": ("Makefile", "test-all: test "),
    "make test-llm": (".ci/run", "make test-llm"),
    "make install": ("Makefile", "demo: $(RUNTIME)"),
    "make test-consumers": ("Makefile", "pytest tests/consumers/consumers.py"),
    "make mini": ("Makefile", "test: $(DEV) $(MINI)/.installed"),
    "make graph-stages": ("tests/research/test_graph_stages.py", "read_chains()"),
    "make curated-stages": ("tests/research/test_curated_stages.py", "report([RESULT])"),
    "make rewrites": ("tests/research/test_rewrites.py", "rewrites"),
    "make prm-windows": ("tests/research/test_prm_windows.py", "invoke(main, "),
    "make prm-replays": ("tests/research/test_prm_replays.py", "invoke(main, "),
    "make candidates": ("tests/research/test_candidates.py", "research.candidates"),
    "make evidence": ("tests/research/test_evidence.py", "print_scores(read_labels("),
    "make suspicion": ("tests/research/test_suspicion.py", "main"),
    "make imported-stages": ("tests/research/test_imported_stages.py", "imported_stages"),
    "make optimality 'ARGS=--db": ("tests/research/test_path_bound.py", 'main(["--db", '),
    "make lineage": ("tests/research/test_lineage.py", "invoke(main, "),
    "make state-pairs": ("tests/research/test_state_pairs.py", "tree_by_script("),
    "make needs": ("tests/research/test_needs.py", "invoke(main, "),
    "make secrets": ("tests/research/test_secrets.py", "invoke(rig.main, "),
    "python -m pytest": ("tests/environments/test_briefing.py", "python -m pytest FILES"),
    "make strength": ("tests/research/test_strength.py", "invoke(main, "),
    "make harbor-runs": ("tests/research/test_harbor_runs.py", "invoke(main, "),
    "python -m research.harbor.parity": ("tests/research/test_harbor_scan.py", "(parity.main, "),
    "python -m research.harbor.scan": ("tests/research/test_harbor_scan.py", "(scan.main, "),
    "python -m research.harbor.drifts": ("tests/research/test_harbor_drifts.py", "drifts.cut_off("),
    "python -m research.exchanges": ("tests/research/test_exchanges.py", "without_volatile("),
    "python -m research.real_rollouts": ("tests/research/test_program_rollouts.py", "script.answer("),
    "python -m research.harbor.roots": ("tests/research/test_harbor_drifts.py", "invoke(roots.main, "),
    "python -m research.grades.audited": ("tests/research/test_audited.py", "invoke(main, "),
    "make grades": ("tests/research/test_grades.py", "invoke(main, "),
    "make mutations": ("tests/research/test_mutations.py", "verdict("),
    "make shape": ("tests/research/test_shape.py", "longest_way("),
    "make bench": ("tests/research/test_bench.py", "main(["),
    ".ci/run": (".ci/run", "make test\n"),
    "swebench eval": ("tests/chains/test_swebench.py", "eval_script"),
}
"""Start of a command line that needs minutes, the network or other programs, to what runs the same: a file, and words
of it. `.ci/run` runs these tests."""

_CODE = re.compile(
    r"^```[^\n]*\n(?P<fenced>.*?)^```|(?P<block>(?:^    \S[^\n]*\n)+)|`(?P<inline>(?:[^`\n]|\n(?!\n))+)`", re.M | re.S
)
_COMMAND = re.compile(
    r"(?P<given>(?:[A-Z_]+=\S+ +)*)"
    r"(?P<program>(?:\S*/)?(?:prchain|make|python|swebench)(?=\s|$)|git(?= [a-z]+(?: |$))|export(?=\s)|\.ci/run)"
    r"(?P<rest>.*)"
)
_TARGET = re.compile(r"^([a-z0-9-]+):.*## (.*)\n\t@?\$\(BIN\)/prchain ", re.M)
_ASSIGNMENT = re.compile(r'[A-Z]+=(?:"[^"]*"|\S+)')


class NotCovered(Exception):
    """No rule covers a command line."""


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of every command line in the code of a text, also in comments; the program first."""
    for code in _CODE.finditer(text):
        lines = [code["inline"].replace("\n", " ")] if code["inline"] else (code["fenced"] or code["block"]).split("\n")
        found = [(line, list(_of_line(line))) for line in lines if line.strip()]
        if not code["inline"] and any(words for _, words in found):
            assert [line for line, words in found if not words] == [], "no command line, among command lines"
        for _, words in found:
            yield from words


def _of_line(line: str) -> Iterator[list[str]]:
    typed, _, comment = line.strip().partition(" # ")
    for part in (typed, comment.strip().removeprefix("or: ")):
        if match := _COMMAND.match(part):
            if match["program"] == "swebench" and not match["rest"]:
                continue  # the name of a format
            words = shlex.shlex(match["rest"], posix=True, punctuation_chars=True)
            words.whitespace_split, words.commenters = True, ""
            yield [*match["given"].split(), match["program"].removeprefix(".venv/bin/"), *words]


def of_the_makefile() -> Iterator[list[str]]:
    """The targets that run prchain, without and with the variables in their help."""
    for target, help_text in _TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")):
        yield ["make", target]
        if assignments := _ASSIGNMENT.findall(help_text):
            yield ["make", target, *shlex.split(" ".join(assignments))]


LINES = {shlex.join(words): words for words in (*command_lines(pages()), *of_the_makefile())}


def command_of(words: list[str]) -> str:
    """The command in the words after `prchain`, by its rule; options may come before it. Raises `NotCovered`."""
    if words == ["--help"]:
        return ""
    while words and words[0] in OF_THE_GROUP:
        words = words[1 + OF_THE_GROUP[words[0]] :]
    for name in (" ".join(words[:3]), " ".join(words[:2]), *words[:1]):
        if name in RULES:
            return name
    raise NotCovered(shlex.join(["prchain", *words]))


def make_lines(words: list[str]) -> list[list[str]]:
    """What make would run."""
    installed = [f"--assume-old=.venv/{name}" for name in (".runtime-installed", ".dev-installed", "mini/.installed")]
    process = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *installed, *words],
        cwd=ROOT,
        check=True,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    return [found for line in process.stdout.split("\n") for found in _of_line(line)]


def filled(words: list[str], rule: Rule, ids: Mapping[str, str]) -> list[str]:
    """A command line with its placeholders filled in."""
    places = {**PLACES, **rule.replaces}
    argument = [rule.wants] if rule.wants and shlex.join(words) == command_of(words) else []
    words = [places.get(word, word) for word in (*words, *argument, *_lacking(words, rule.adds))]
    return [re.sub(r"TRAJECTORY|CHAIN|GRAPH", lambda place: ids[place[0]], word) for word in words]


def _lacking(words: list[str], adds: Sequence[str]) -> list[str]:
    """What of `adds` a command line lacks; a flag goes with the value behind it."""
    lacking: list[str] = []
    of_a_flag = there = False
    for word in adds:
        if word.startswith("--") or not of_a_flag:
            of_a_flag, there = word.startswith("--"), word in words
        lacking += [] if there else [word]
    return lacking


@pytest.fixture
def folder(finished_demo: Ran, tmp_path: Path) -> Callable[[], Path]:
    """A copy of the demo's folder, which tests may change; made for those that ask for it."""
    return cache(lambda: finished_demo.copied(tmp_path / "demo"))


@pytest.fixture
def ids(finished_demo: Ran) -> Mapping[str, str]:
    """The beginnings of the ids of the rejected trajectory, which is the shortest, of its chain, and of the graph."""
    from sql.tables import GraphRow, Trajectory

    rejected = finished_demo.rows(Trajectory, "id", "chain_id", "options", outcome="rejected")
    ((trajectory, chain),) = [row[:2] for row in rejected if row[2]["tools"] == "full"]
    ((graph,),) = finished_demo.rows(GraphRow, "id")
    return {"TRAJECTORY": trajectory[:6], "CHAIN": chain[:6], "GRAPH": graph[:6]}


class Typist:
    """Runs command lines in a folder, those with lasting rules in another one, and fails where they do."""

    def __init__(
        self,
        folder: Callable[[], Path],
        ids: Mapping[str, str],
        capsys: pytest.CaptureFixture[str],
        *,
        lasting: Callable[[], Path] | None = None,
        engine: bool = False,
    ) -> None:
        self._folder, self._ids, self._capsys, self._engine = folder, ids, capsys, engine
        self._lasting = lasting or folder

    def types(self, words: list[str]) -> None:
        """Run one command line; raises `NotCovered`."""
        assignments = list(itertools.takewhile(lambda word: "=" in word or word == "export", words))
        self._check_variables({word.partition("=")[0] for word in assignments} - {"export"})
        if words := words[len(assignments) :]:
            self._run(words)

    def _check_variables(self, names: set[str]) -> None:
        assert names <= {MODEL_VARIABLE, *(variable(name) for name in Settings.model_fields)}

    def _run(self, words: list[str]) -> None:
        command_line = shlex.join(words)
        places = [place for start, place in ELSEWHERE.items() if f"{command_line} ".startswith(f"{start} ")]
        if places:
            ((file, text),) = places
            assert text in (ROOT / file).read_text(encoding="utf-8")
        elif words[0] == "prchain":
            self._prchain(words[1:])
        elif words[0] == "make":
            lines = [words] if words[1:] == ["help"] else make_lines(words[1:])
            assert lines
            for line in lines:
                if line == words:
                    self._program(line)
                elif shlex.join(line) not in LINES:  # else it runs as a line of its own
                    self.types(line)
        elif words[:2] == ["python", "-m"] and words[2] in MODULES:
            assert re.search(MODULES[words[2]], self._program([sys.executable, *words[1:]]), re.S)
        elif words[0] == "git":
            shutil.copytree(self._folder() / "measures", self._folder() / "mirror")
            self._program(["git", "remote", "add", "origin", str(self._folder() / "measures")], "mirror")
            self._program(words, "mirror")
        else:
            raise NotCovered(command_line)

    def _prchain(self, words: list[str]) -> None:
        rule = RULES[command_of(words)]
        words = filled(words, rule, self._ids)
        parses_only = rule.engine and not self._engine
        with chdir(self._lasting() if rule.lasting else self._folder()):
            code = run([*words, "--help"] if parses_only else words)
        out, err = self._capsys.readouterr()
        assert code in ((0,) if parses_only else rule.ends), err
        assert re.search("Example:" if parses_only else rule.says, out + err), out + err

    def _program(self, words: list[str], folder: str | None = None) -> str:
        working_folder = ROOT if folder is None else self._folder() / folder
        process = subprocess.run(words, cwd=working_folder, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        return process.stdout


@pytest.fixture(scope="module")
def lasting_folder(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A copy of the demo's folder, for the lines of lasting rules."""
    return cache(lambda: finished_demo.copied(tmp_path_factory.mktemp("lasting") / "demo"))


@pytest.fixture
def typist(
    folder: Callable[[], Path],
    lasting_folder: Callable[[], Path],
    ids: Mapping[str, str],
    capsys: pytest.CaptureFixture[str],
) -> Typist:
    return Typist(folder, ids, capsys, lasting=lasting_folder)


def one_in_some(line: str) -> ParameterSet:
    """A line, as one of those of its rule: of these one in six runs, at least one."""
    words = LINES[line]
    if words[0] != "prchain":
        return pytest.param(line)
    return pytest.param(line, marks=pytest.mark.drawn(8, f"lines of {command_of(words[1:])}"))


@pytest.mark.parametrize("line", [one_in_some(line) for line in LINES], ids=list(LINES))
def test_every_command_line_works(line: str, typist: Typist) -> None:
    typist.types(LINES[line])


def read(words: list[str]) -> None:
    """Have the commands' options read, without running any. Raises `click.UsageError`."""
    command: click.Command = cli
    name: str | None = "prchain"
    context: click.Context | None = None
    while True:
        context = command.make_context(name, words, parent=context)
        if not isinstance(command, click.Group):
            return
        name, found, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command = found


def test_every_command_line_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that do not run this time have options that there are, with values of their kinds."""
    ids = dict.fromkeys(("TRAJECTORY", "CHAIN", "GRAPH"), "abcdef")
    wrong = []
    with chdir(tmp_path):
        for line, words in LINES.items():
            if words[0] == "prchain":
                rule = RULES[command_of(words[1:])]
                try:
                    read(filled(words[1:], rule, ids))
                except click.exceptions.Exit:
                    capsys.readouterr()
                except click.UsageError as error:
                    wrong += [] if error.exit_code in rule.ends else [(line, error.format_message())]
    assert wrong == []
    with pytest.raises(click.UsageError):
        read(["tasks", "list", "--nope"])


@pytest.mark.docker
def test_command_lines_that_need_the_engine_work(
    finished_demo: Ran,
    tmp_path: Path,
    ids: Mapping[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = finished_demo.copied(tmp_path / "demo")
    name = f"test/readme-{os.getpid()}"
    owner, _, own = name.partition("/")
    (folder / "recipes" / override_name(REPOSITORY)).rename(folder / "recipes" / override_name(name))
    store = Store.open(str(folder / "prchain.db"))
    with store.transaction() as tx:
        tx.connection.execute(update(Repository).values(owner=owner, name=own))
    store.close()
    image = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
    monkeypatch.setenv(variable("environments_base_image"), image)
    monkeypatch.setenv(variable("environments_backend"), "docker")
    needs = [words for words in LINES.values() if words[0] == "prchain" and RULES[command_of(words[1:])].engine]
    try:
        builds = [words for words in needs if words[2] == "build"]
        others = [words for words in needs if words[2] != "build"]
        for words in [*builds, *drawn(others, len(others) // 2, "command lines in containers")]:
            Typist(lambda: folder, ids, capsys, engine=True).types(words)
    finally:
        with chdir(folder):
            assert run(["environments", "prune", "--all", "--everybody", "--repository", name]) == 0


def test_every_rule_is_of_a_command_and_says_why_it_changes_the_line() -> None:
    assert {name.partition(" --")[0] for name in RULES} == {""} | {
        name for name, command in every_command().items() if not hasattr(command, "commands")
    }
    assert [name for name, rule in RULES.items() if (rule.adds or "4" in rule.replaces) and not rule.why] == []


def test_the_makefile_has_a_target_for_each_stage() -> None:
    stages = {"demo", "mine", "chains", "tasks", "environments", "rollouts", "curate", "export", "stats", "status"}
    assert {words[1] for words in of_the_makefile()} == stages | set(PAPERS)


def test_command_lines_are_found_wherever_they_stand() -> None:
    text = (
        "Run `A=... prchain tasks\nlist`, not `prchain.toml`.\n\n    make mine     # or: prchain show 'a/b#1'\n"
        '    .venv/bin/prchain sql --query "SELECT 1"\n\n    make sure, it says\n\n```sh\ngit log --all\n```\n'
    )
    assert list(command_lines(text)) == [
        ["A=...", "prchain", "tasks", "list"],
        ["make", "mine"],
        ["prchain", "show", "a/b#1"],
        ["prchain", "sql", "--query", "SELECT 1"],
        ["make", "sure,", "it", "says"],
        ["git", "log", "--all"],
    ]
    with pytest.raises(AssertionError, match="among command lines"):
        list(command_lines("    make mine\n    frobnicate\n"))


@pytest.mark.parametrize("line", ["prchain nope", "prchain chains nope", "python -m nope", "swebench nope"])
def test_a_command_line_without_a_rule_fails(line: str, typist: Typist) -> None:
    with pytest.raises(NotCovered):
        typist.types(line.split())


@pytest.mark.parametrize(
    "line", ["prchain tasks list --nope", "prchain chains show nope", "prchain environments gc --nope", "export NOPE=1"]
)
def test_a_command_line_that_does_not_work_fails(line: str, typist: Typist) -> None:
    with pytest.raises(AssertionError):
        typist.types(line.split())


def test_the_settings_that_the_docs_show_are_the_ones_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pages().partition("| key in prchain.toml |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.split("\n")[2:]]
    named = {name.strip(" []").partition(".")[0] for row in rows for name in row.split(",")}
    assert named == set(Settings.model_fields)
    (example,) = re.findall(r"^    # prchain\.toml\n((?:    .*\n|\n)+)", pages(), re.M)
    (tmp_path / FILE).write_text(re.sub("^    ", "", example, flags=re.M), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Settings.load().purposes["query"].model == "other-model"


def test_the_readme_leads_from_the_demo_through_the_pipeline_in_its_order() -> None:
    assert readme().index("\n    make demo\n") < readme().index("\n    prchain mine my-repos.txt\n")
    stages = ["mine", "chains", "tasks", "environments", "rollouts", "export"]
    assert re.findall(r"^\| `prchain ([a-z]+)", readme(), re.M) == [
        *stages[:-1],
        "record",
        "curate",
        "curate",
        "evaluate",
        "export",
    ]
    own = readme().partition("## Your own repositories")[2].partition("\n| ")[0]
    assert list(dict.fromkeys(re.findall(r"^    prchain ([a-z]+)", own, re.M))) == [*stages, "status"]


def test_the_readme_shows_a_chain_and_a_sample_of_the_demo(finished_demo: Ran) -> None:
    """Without what it leaves out."""
    (chain,) = re.findall(r"^    chain ([0-9a-f]{16})  ", readme(), re.M)
    with chdir(finished_demo.folder):
        process = subprocess.run(
            [sys.executable, "-m", "prchain.cli", "chains", "show", chain],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    printed = [line.strip() for line in process.stdout.splitlines()]
    for line in re.findall(r"^           (\+\S.*)$|^      (\d\. #.*)$", readme(), re.M):
        assert any(printed_line.startswith("".join(line).strip()) for printed_line in printed), line
    first = (finished_demo.folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()[0]
    contents = re.findall(r'"content": "(.*?)(?: \.\.\.|")', readme())
    assert len(contents) > 4
    assert [words for words in contents if words not in first and "/testbed" not in words] == []  # elsewhere here
