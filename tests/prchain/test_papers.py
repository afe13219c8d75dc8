"""`--as-paper`: what each paper names, by section, is what a command then works with, and the command line wins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run
from prchain.core.errors import UsageError
from prchain.papers import PAPERS, SETTINGS, commands_of

TABLE: dict[tuple[str, str], dict[str, tuple[Any, str]]] = {
    ("davinci", "chains build"): {
        "strategy": ("reference", "3.2, equation 2: pr_i refers to pr_i-1"),
        "longest": (5, "1: chains of up to five"),
        "floor": (0.0, "4.2: citations make the edges, of any confidence"),
    },
    ("davinci", "tasks build"): {
        "names": ("withheld", "4.2 and appendix C: no literal names, nothing beside the query")
    },
    ("davinci", "rollouts run"): {
        "interface": ("paper", "4.2"),
        "gate": ("judge", "4.3: an evaluator scores"),
        "threshold": (0.8, "4.3: s >= 0.8"),
        "judge_sees": ("patches", "appendix D: the judge's inputs"),
        "refinements": (3, "4.3: up to three"),
        "carry": ("agent", "4.3, equation 4"),
    },
    ("davinci", "export"): {
        "refinements": ("keep", "3.3, equation 3: the loss is over all actions"),
        "masks": (frozenset(), "3.3, equation 3"),
        "recipe": ("slime", "appendix E"),
    },
    ("p2t", "curate graphs"): {
        "rounds": (6, "appendix D: T_max"),
        "empty_rounds": (2, "appendix D: two in a row"),
        "tool_calls": (40, "appendix D"),
    },
    ("p2t", "curate run"): {
        "window": (10, "5.1 and appendix H: n"),
        "stride": (5, "appendix H: delta"),
        "seeds": (2, "appendix H: K"),
        "floor": (0.5, "appendix H"),
        "variants": (1, "appendix H: up to one mutation per seed"),
        "est": ("prefix", "appendix H: every node and step, by some action of the prefix"),
        "premature": ("zero", "4.1 and algorithm 1, line 23: the indicator zeroes the step"),
        "pick": ("model", "appendix F: the curator picks"),
        "length": ("tokens", "3.3"),
        "commit": ("shortest", "3.3"),
        "ground": (True, "4.2"),
        "empty": ("usual", "appendix G, algorithm 1: no other kind of window"),
        "steps": (100, "5.1: 100 iterations"),
    },
    ("p2t", "curate study coverage"): {
        "asked": ("prefix", "appendix C: the criterion of curation, appendix H: each node")
    },
    ("p2t", "curate study disclosure"): {"steps": (100, "appendix C: 100 iterations")},
    ("p2t", "rollouts run"): {
        "gate": ("tests", "3.2 and 5.1: rejection sampling by tests"),
        "refinements": (0, "3.2"),
        "min_length": (1, "5.1: SWE-Gym's instances"),
        "steps": (100, "5.1"),
    },
    ("p2t", "export"): {
        "masks": (frozenset(), "appendix J: all assistant tokens"),
        "recipe": ("swift", "appendix J"),
        "max_tokens": (131_072, "appendix J"),
    },
    ("swe-prm", "rollouts run"): {
        "temperature": (0.0, "4.2"),
        "top_p": (1.0, "4.2"),
        "steps": (75, "4.2"),
        "gate": ("tests", "4.3"),
        "refinements": (0, "4.2"),
        "min_length": (1, "4.1"),
        "tools": ("swe-agent", "3.1: bash, str_replace_editor, submit"),
        "calls": ("text", "appendix A.1, listing 1"),
        "shell": ("swe-agent", "appendix A.1, listing 1"),
        "prm": (
            {"variant": "D", "every": "5", "window": "8", "evidence": "any", "words": "raw", "rules": "paper"},
            "3.2.3, 4.2: n = 5, k = 8; listings 3 to 6: a quote or an observation",
        ),
    },
    ("swe-prm", "prm sweep"): {
        "temperature": (0.0, "4.2"),
        "top_p": (1.0, "4.2"),
        "steps": (75, "4.2"),
        "gate": ("tests", "4.3"),
        "refinements": (0, "4.2"),
        "tools": ("swe-agent", "3.1: bash, str_replace_editor, submit"),
        "calls": ("text", "appendix A.1, listing 1"),
        "shell": ("swe-agent", "appendix A.1, listing 1"),
        "prm": (
            {"every": "5", "window": "8", "evidence": "any", "words": "raw", "rules": "paper"},
            "4.2, listings 3 to 6",
        ),
    },
}
"""By paper and command: what the command works with, and where the paper says so."""

PLACES = {
    "tasks build": "chains.tasks.run.open_run",
    "rollouts run": "trajectories.rollouts.run.open_run",
    "curate graphs": "trajectories.curation.graphs.run.open_run",
    "curate run": "trajectories.curation.windows.run.open_run",
    "curate study coverage": "trajectories.studies.curation.coverage_run.open_coverage",
    "curate study disclosure": "trajectories.studies.curation.disclosure_run.open_disclosure",
    "prm sweep": "trajectories.studies.guidance.sweeps.sweep.open_sweep",
    "export": "trajectories.export.cli._export_samples",
    "chains build": "chains.cli._options",
}
"""Command to what gets its options."""


class Held(UsageError):
    """In place of what a command does."""


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """Calls a command line and returns all that the command would have worked with."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}

    def holds(*arguments: Any, **keywords: Any) -> None:
        found.clear()
        for one in (*arguments, *keywords.values()):
            if is_dataclass(one):
                found.update({field.name: getattr(one, field.name) for field in fields(one)})
            elif isinstance(one, tuple) and hasattr(one, "_asdict"):
                found.update(one._asdict())
            elif isinstance(one, dict):
                found["prm"] = one
        found.update(keywords)
        raise Held("held")

    def options_of(command: str, *line: str) -> dict[str, Any]:
        monkeypatch.setattr(PLACES[command], holds)
        more = ["--out", "x.jsonl"] if command == "export" else []
        assert run([*line[:2], *command.split(), *more, *line[2:]]) == Held("x").exit_code
        if observers := found.get("observers"):
            found["prm"] = dict(part.split("=") for part in observers[0].partition(":")[2].split(","))
        limits = found.get("stage_limits")
        found["steps"] = getattr(limits, "steps", None)
        found["longest"] = found.get("limits", (0, 0))[1]
        if "floors" in found:
            found["floor"] = found["floors"][0]
        return found

    yield options_of


@pytest.mark.parametrize(("paper", "command"), TABLE, ids=[" ".join(key) for key in TABLE])
def test_what_a_paper_names_is_what_the_command_works_with(
    paper: str, command: str, held: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = held(command, "--as-paper", paper)
    for name, (value, section) in TABLE[paper, command].items():
        assert options[name] == value, f"{name}, {section}"
    assert capsys.readouterr().err.startswith(f"as in {paper}: --"), "said before it runs"


def test_every_setting_stands_in_the_table() -> None:
    assert {(one.paper, one.command) for one in SETTINGS} - TABLE.keys() == {("davinci", "tasks export")}
    assert {one.paper for one in SETTINGS} == set(PAPERS)
    counts = {key: len(TABLE[key]) + (key[1] == "export") for key in TABLE}  # --format is no option of a class
    flags = {
        (paper, command): sum(map(len, flags.values()))
        for paper in PAPERS
        for command, flags in commands_of(paper).items()
        if (paper, command) in TABLE
    }
    counts["swe-prm", "rollouts run"] += 4  # five settings of one observer
    counts["swe-prm", "prm sweep"] += 4
    assert flags == counts


def test_single_options_go_before_and_leave_the_other_keys_of_their_flag(
    held: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = held("curate run", "--as-paper", "p2t", "--windows", "seeds=1")
    assert (options["seeds"], options["est"], options["pick"], options["window"]) == (1, "prefix", "model", 10)
    assert "what the command line says goes before: --windows" in capsys.readouterr().err


def test_a_paper_goes_before_prchain_toml(held: Callable[..., dict[str, Any]]) -> None:
    Path("prchain.toml").write_text('[defaults.curate.run]\nwindows = { pick = "rule", floor_unit = "nodes" }\n')
    options = held("curate run", "--as-paper", "p2t")
    assert (options["pick"], options["floor_unit"]) == ("model", "nodes")


@pytest.mark.parametrize(("line", "words"), [
    (["--as-paper", "p2t", "mine", "x"], "p2t names no setting of `mine`; it does of curate graphs"),
    (["--as-paper", "davinci", "rollouts", "list"], "davinci names no setting of `rollouts list`"),
    (["--as-paper", "p2", "rollouts", "run"], "'p2' is not one of"),
    (["--as-paper", "swe-prm", "rollouts", "run", "--like", "81c2"], "leave out --as-paper"),
], ids=range(4))  # fmt: skip
def test_a_name_or_a_command_that_no_paper_speaks_of_is_refused(
    line: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line) == 2
    assert words in capsys.readouterr().err
