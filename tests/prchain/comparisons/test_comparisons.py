"""Papers' main comparisons on the demo's history with a scripted model: from a pool to trainers' files and a table."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pickle
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from prchain.cli import cli, run
from prchain.comparisons.rows import EXPERT_PRM, OPEN_PRM, SETS, Origin
from prchain.comparisons.run import ComparisonResult, planned, run_steps, samples_of
from prchain.comparisons.steps import ComparisonChoice, ComparisonStep, steps_of
from prchain.comparisons.table import (
    A_SCRIPT,
    NO_COST,
    NO_FILE,
    NO_RUNS,
    NOT_ALONE,
    NOT_OURS,
    NOT_ROLLED_OUT,
    NOT_SHARED,
    print_table,
    table_row,
    tables_of_guidance,
    tables_of_sets,
)
from prchain.core.errors import UsageError
from prchain.papers import PAPERS
from sql.tables import GraphRow, LlmCall, Task, Trajectory
from tests.databases import new_database
from tests.prchain.comparisons.comparisonworld import lay_out
from tests.prchain.test_papers import TABLE
from tests.trajectories.demoworld import Ran, alone_in
from trajectories.curation.windows.options import DEFAULTS as WINDOWS
from trajectories.studies.evaluation.figures import InstanceRun
from trajectories.studies.evaluation.stored import EvaluatedRun

GIVEN = {
    "swe-prm": ("--pool", "pool.jsonl", "--limit", "1"),
    "p2t": (),
    "davinci": ("--pool", "repos.txt", "--limit", "3"),
}


class World(NamedTuple):
    """A folder in which the three comparisons were run, with what each printed, and its exit code."""

    folder: Path
    printed: Mapping[str, str]
    codes: Mapping[str, int]

    def calls(self) -> int:
        """How many questions were answered; what the script has no answer to is asked again."""
        return sum(reply is not None for (reply,) in Ran(self.folder, "", "").rows(LlmCall, "reply"))


@pytest.fixture(scope="module")
def world(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory, bubblewrap: None) -> World:
    """Made once for the tests of all processes; what they add to it is no matter to the others."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    kept = shared / "papers-world"
    with (shared / "papers-world.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(made(finished_demo, tmp_path_factory.mktemp("papers") / "demo")))
    world: World = pickle.loads(kept.read_bytes())
    return world


def made(ran: Ran, folder: Path) -> World:
    pool = lay_out(ran, folder)
    printed, codes = {}, {}
    with alone_in(folder):
        for paper, given in GIVEN.items():
            printed[paper], codes[paper] = told("papers", "run", paper, *given, "--folder", paper)
            if paper == "swe-prm":  # it measures on the tasks on which P2T trains
                assert told("tasks", "import", pool.name, "--training")[1] == 0
    return World(folder, printed, codes)


def told(*words: str) -> tuple[str, int]:
    """What a command line prints, and its exit code."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(words))
    return out.getvalue(), code


def commands(printed: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (prchain .*)$", printed, re.M)]


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_comparison_shows_and_runs_its_commands_up_to_the_table(paper: str, world: World) -> None:
    shown = commands(world.printed[paper])
    steps = steps_of(paper, ComparisonChoice(Path(paper), Path(GIVEN[paper][1]) if GIVEN[paper] else None))
    assert [line[:2] for line in shown] == [list(step.command[:2]) for step in steps]
    assert shown[-1] == ["papers", "table", paper, "--folder", paper]
    table = world.printed[paper].rpartition("$ prchain papers table")[2]
    assert "table" in table and max(map(len, table.partition("\n\n")[0].splitlines())) <= 80


def test_daVinci_ends_with_a_file_for_slime_of_each_kind_of_chain(world: World) -> None:  # noqa: N802
    folder = world.folder / "davinci"
    stages = {
        name: len(rows(folder, f"davinci-{name}.jsonl")[0]["metadata"]["stages"]) for name in ("agency", "single")
    }
    assert stages == {"agency": 3, "single": 1}
    assert not (folder / "davinci-temporal.jsonl").exists(), "the script knows no agent for these chains"
    for name in stages:
        assert "--prompt-data" in (folder / f"davinci-{name}.jsonl.recipe.sh").read_text(encoding="utf-8")
    assert world.codes["davinci"] == 1
    left = world.printed["davinci"].rpartition("with something left")[2]
    assert "export --strategy temporal" in left and "export --strategy single" not in left
    table = world.printed["davinci"].rpartition("$ prchain papers table")[2]
    assert re.search(r"^SinglePR +1 +\(", table, re.M) and re.search(r"^Temporal +\(", table, re.M)
    for why in (NO_FILE, NOT_OURS):
        assert why in table


def test_p2t_ends_with_files_for_swift_and_matches_sizes(world: World) -> None:
    folder = world.folder / "p2t"
    files = {row.title: rows(folder, f"{row.name}.jsonl") for row in SETS["p2t"]}
    plain, masked, matched, full = files.values()
    assert len(plain) == len(masked) == len(matched) == len(full) == 1
    assert full == matched and plain[0]["messages"] != full[0]["messages"]
    assert "--at-most 1" in world.printed["p2t"]
    assert "megatron sft" in (folder / "p2t-full.jsonl.recipe.sh").read_text(encoding="utf-8")
    assert re.search(r"^Test-Pass RS +1 +\(a\) +\(a\)$", world.printed["p2t"], re.M)
    assert "curate graphs" in world.printed["p2t"].rpartition("with something left")[2], "one stage is not scripted"


def test_swe_prm_rolls_out_under_all_variants_and_blanks_what_a_script_did(world: World) -> None:
    assert world.codes["swe-prm"] == 0
    report, _, table = world.printed["swe-prm"].rpartition("$ prchain papers table")
    for name in ("base", *OPEN_PRM):
        assert re.search(rf"^{name} +0\.0% .* 3\.00$", report, re.M), (
            "the figures of the script's own rollouts, in the report alone"
        )
        assert re.search(rf"^{name} +\(a\) +\(a\) +\(a\) +\(a\)$", table, re.M)
    assert A_SCRIPT in table


STORED = [
    ("davinci", "tasks build"), ("davinci", "rollouts run"), ("davinci", "export"),
    ("p2t", "curate graphs"), ("p2t", "curate run"), ("p2t", "rollouts run"), ("p2t", "export"),
    ("swe-prm", "prm sweep"),
]  # fmt: skip
"""What the comparisons run as in a paper and what leaves its settings, by paper and command."""


@pytest.mark.parametrize("of", STORED, ids=" ".join)
def test_what_a_paper_names_is_what_its_run_stores(of: tuple[str, str], world: World) -> None:
    wanted = {name: value for name, (value, _) in TABLE[of].items()}
    found = list(stored_values(world, *of))
    assert found
    assert wanted in [{name: values.get(name, "?") for name in wanted} for values in found]


def stored_values(world: World, paper: str, command: str) -> Iterator[dict[str, Any]]:
    """The settings that runs of a command have left in the database, or an export in its card; by the names of
    `TABLE`, one for each result."""
    ran = Ran(world.folder, "", "")
    if command == "tasks build":
        for (prompts,) in ran.rows(Task, "prompts"):
            yield {"names": "withheld" if "withheld" in prompts else "none"}
    elif command == "curate graphs":
        yield from (options for (options,) in ran.rows(GraphRow, "options"))
    elif command == "export":
        for card in (world.folder / paper).glob("*.card.json"):
            options = json.loads(card.read_text(encoding="utf-8"))["options"]
            yield options | {"masks": frozenset(options["masks"])}
    else:
        for options, decided in ran.rows(Trajectory, "options", "decided_by"):
            yield {**options, **of_trajectory(options, decided)}


def of_trajectory(options: Mapping[str, Any], decided: Mapping[str, Any]) -> dict[str, Any]:
    agent, observers = decided["models"]["agent"], decided.get("observers", [])
    keys = ("every", "window", "evidence", "words", "rules")
    return {
        "steps": options["stage_limits"]["steps"],
        **{name: agent.get(name) for name in ("temperature", "top_p")},
        **({"prm": {name: str(observers[0]["settings"].get(name)) for name in keys}} if observers else {}),
        **({**WINDOWS, **decided["curation"]["options"]} if "curation" in decided else {}),
    }


def test_run_again_a_comparison_asks_nothing_and_comes_to_the_same_files(world: World) -> None:
    before = world.calls()
    files = {path.name: path.read_bytes() for path in (world.folder / "p2t").glob("*.jsonl")}
    with alone_in(world.folder):
        printed, code = told("papers", "run", "p2t", "--folder", "p2t")
    assert code == world.codes["p2t"] == 1
    assert world.calls() == before
    assert {path.name: path.read_bytes() for path in (world.folder / "p2t").glob("*.jsonl")} == files
    assert printed.rpartition("The table")[2] == world.printed["p2t"].rpartition("The table")[2]


def test_predictions_of_trained_models_fill_their_places(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    pool = rows(world.folder, "pool.jsonl")
    lines = [
        {"instance_id": row["instance_id"], "model_name_or_path": model, "model_patch": row["patch"] if good else ""}
        for row in pool
        for model, good in (("p2t-full", True), ("p2t-test-pass", row is pool[0]))
    ]
    with alone_in(world.folder):
        Path("predictions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        words = ["papers", "table", "p2t", "--folder", "p2t", "--source", "pool"]
        assert run([*words, "--predictions-from", "predictions.jsonl", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    found = {row["trained on"]: (row["figures"], row["empty"]) for row in table["rows"]}
    assert found["Full"] == ({"size": 1, "Pass@1 (%)": 100.0, "Cost ($)": None}, {"Cost ($)": NO_COST})
    assert found["Test-Pass RS"][0]["Pass@1 (%)"] == 50.0
    assert found["Size-Matched"][1] == {"Pass@1 (%)": NO_RUNS, "Cost ($)": NO_RUNS}


def test_predictions_that_cannot_be_graded_end_the_table_with_1(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with alone_in(world.folder):
        Path("bad.jsonl").write_text('{"instance_id": "nobody__knows-1", "model_patch": ""}\n', encoding="utf-8")
        assert run(["papers", "table", "davinci", "--folder", "davinci", "--predictions-from", "bad.jsonl"]) == 1
    printed = capsys.readouterr()
    assert "bad.jsonl, row 1" in printed.err and "table 1: no benchmark is in this database" in printed.out


# ---- steps


@click.group()
def group() -> None:
    """Commands of a test."""


@group.command("mine")
@click.option("--limit")
@click.option("--db")
def _mine(limit: str, db: str) -> None:
    pass


@group.command("export")
@click.option("--at-most")
@click.option("--out")
def _export(at_most: str, out: str) -> None:
    pass


def ran(codes: Mapping[str, int], *steps: ComparisonStep) -> tuple[list[list[str]], ComparisonResult]:
    lines: list[list[str]] = []

    def one(words: list[str]) -> int:
        lines.append(words)
        return codes.get(words[0], 0)

    return lines, run_steps(steps, group, {"--db": "x.db", "--limit": "2", "--unsafe-local": True}, one)


@pytest.mark.parametrize(("code", "go_on", "goes_on"), [
    (0, False, True), (1, False, True), (2, False, False), (2, True, True), (130, True, False),
])  # fmt: skip
def test_a_run_goes_on_after_what_is_left_and_ends_where_it_is_refused_or_interrupted(
    code: int, go_on: bool, goes_on: bool
) -> None:
    lines, result = ran(
        {"mine": code}, ComparisonStep("", "", ["mine"], go_on=go_on), ComparisonStep("", "", ["export"])
    )
    assert lines == [["mine", "--db", "x.db"], *([["export"]] if goes_on else [])], "each has the flags that it knows"
    assert result.left == (("prchain mine --db x.db",) if code else ())
    assert result.stopped == (0 if goes_on else code)


@pytest.mark.parametrize(("samples", "words"), [(3, ["--at-most", "3"]), (0, None), (None, None)])
def test_as_many_samples_are_drawn_as_the_other_file_has(
    samples: int | None, words: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    if samples is not None:
        other.with_name("other.jsonl.card.json").write_text(json.dumps({"samples": samples}))
    step = ComparisonStep("", "", ["export", "--out", "x"], at_most=other)
    lines, _ = ran({}, step)
    assert lines == ([] if words is None else [["export", "--out", "x", *words]])
    assert ("Left out" in capsys.readouterr().out) == (words is None)
    assert planned([step], group, {}) == [["export", "--out", "x", "--at-most", "N"]]


def test_a_card_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.card.json").write_text("[]")
    with pytest.raises(UsageError, match="is no card of an export"):
        samples_of(tmp_path / "x.jsonl")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_dry_run_prints_commands_that_can_be_typed_and_makes_nothing(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool").write_text("")
    assert run(["papers", "run", paper, "--pool", "pool", "--budget", "5", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in lines:
        words = [word.replace("N", "1") if word == "N" else word for word in shlex.split(line)[1:]]
        with contextlib.suppress(click.exceptions.Exit):
            cli.make_context("prchain", words, resilient_parsing=False)
    assert len(lines) > 3 and [path.name for path in tmp_path.iterdir()] == ["pool"]
    assert all("--budget 5" in line for line in lines if " rollouts run" in line or " prm sweep" in line)


def test_another_model_that_guides_makes_it_table_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prchain.toml").write_text('[purposes.prm]\nmodel = "expert"\n')
    assert run(["papers", "run", "swe-prm", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert f"--policies agent --guides prm --variants base,{','.join(EXPERT_PRM)}\n" in printed
    assert "--policies prm --variants base\n" in printed, "the table has the expert alone, too"


@pytest.mark.parametrize(("paper", "flags", "shown"), [
    ("swe-prm", ["--policies", "small,large"],
     " prm sweep --strategy imported --policies small,large --guides self --variants "),
    ("davinci", ["--allow-benchmarks"], " chains build --strategy single --side-by-side --allow-benchmarks"),
])  # fmt: skip
def test_choices_of_one_paper_reach_its_commands_and_are_refused_of_others(
    paper: str,
    flags: list[str],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["papers", "run", paper, *flags, "--dry-run"]) == 0
    assert shown in capsys.readouterr().out
    assert run(["papers", "run", "p2t", *flags, "--dry-run"]) == 2
    assert f"{flags[0]} is of {paper}: leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(("paper", "words"), [
    ("davinci", "no repository is mined: give --pool"),
    ("p2t", "no task is imported: give --pool"),
    ("swe-prm", "no task is imported: give --pool"),
])  # fmt: skip
def test_without_anything_to_work_on_it_says_what_to_give(
    paper: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new_database(tmp_path / "prchain.db")
    monkeypatch.chdir(tmp_path)
    assert run(["papers", "run", paper, "--db", "prchain.db"]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "data").exists()


# ---- tables


def evaluated(
    model: str, resolved: bool, usd: float | None = 0.5, *, option: str = "", instance: str = "a/1"
) -> EvaluatedRun:
    run_ = InstanceRun(instance, 0, resolved, True, 3, 2, usd=usd)
    return EvaluatedRun(run_, model, option, option, "agent", "verified", "t")


def test_a_table_of_sets_has_figures_of_the_models_that_have_the_names_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "p2t-full.jsonl.card.json").write_text('{"samples": 1800}')
    runs = [evaluated("p2t-full", True), evaluated("p2t-full", False, 0.3, instance="b/1"), evaluated("other", True)]
    (table,) = tables_of_sets("p2t", tmp_path, {"verified": runs})
    found = {row["trained on"]: row["figures"] for row in table_row(table)["rows"]}
    assert found["Full"] == {"size": 1800, "Pass@1 (%)": 50.0, "Cost ($)": 0.4}
    assert set(found["SWE-Lego"].values()) == {None}


def test_what_a_set_has_more_than_rejection_sampling_stands_beside_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        evaluated("p2t-test-pass", False, 0.9),
        evaluated("p2t-full", True, 0.78),
        evaluated("p2t-size-matched", False, None),
    ]
    (table,) = tables_of_sets("p2t", tmp_path, {"verified": runs})
    print_table(table)
    printed = capsys.readouterr().out
    assert re.search(r"^Test-Pass RS +\(a\) +0\.0 +0\.90$", printed, re.M)
    assert re.search(r"^Full +\(a\) +100\.0 \(\+100\.0\) +0\.78 \(-0\.12\)$", printed, re.M)
    assert re.search(r"^Size-Matched +\(a\) +0\.0 \(\+0\.0\) +\(.\)$", printed, re.M)


def test_students_of_one_set_have_a_table_each(tmp_path: Path) -> None:
    runs = [
        evaluated("p2t-full@qwen-14b", True),
        evaluated("p2t-test-pass@qwen-14b", False),
        evaluated("p2t-full@qwen-32b", False),
        evaluated("other@qwen-7b", True),
    ]
    small, large = (table_row(table) for table in tables_of_sets("p2t", tmp_path, {"verified": runs}))
    assert (small["table"], large["table"]) == tuple(
        f"P2T, table 1: verified, student qwen-{size}" for size in ("14b", "32b")
    )
    passed = [[row["figures"]["Pass@1 (%)"] for row in table["rows"]] for table in (small, large)]
    assert passed == [[0.0, None, None, 100.0], [None, None, None, 0.0]]


def test_ablations_have_a_table_beside_the_full_set_where_there_is_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [evaluated("p2t-full", True, 0.78), evaluated("p2t-ungrounded", False, 0.9)]
    (tmp_path / "p2t-compute-matched.jsonl").touch()
    (tmp_path / "p2t-compute-matched.jsonl.card.json").write_text('{"samples": 12}')
    first, second = tables_of_sets("p2t", tmp_path, {"verified": runs})
    assert [name for name, _ in first.rows] == [row.title for row in SETS["p2t"]]
    print_table(second)
    printed = capsys.readouterr().out
    assert printed.startswith("P2T, table 5 and section 5.4: verified\n")
    assert re.search(r"^RS, 4 passes +12 +\(.\) +\(.\)$", printed, re.M)
    assert re.search(r"^Ungrounded +\(.\) +0\.0 \(-100\.0\) +0\.90 \(\+0\.12\)$", printed, re.M)
    assert len(tables_of_sets("p2t", tmp_path / "else", {"verified": runs[:1]})) == 1
    assert len(tables_of_sets("davinci", tmp_path, {"verified": runs})) == 1


def test_runs_with_several_options_or_without_prices_are_no_figure(tmp_path: Path) -> None:
    runs = [
        evaluated("p2t-full", True, option="steps=5"),
        evaluated("p2t-full", True, option="steps=9"),
        evaluated("p2t-test-pass", True, None),
    ]
    (table,) = tables_of_sets("p2t", tmp_path, {"verified": runs})
    empty = {row["trained on"]: row["empty"] for row in table_row(table)["rows"]}
    assert "several options" in empty["Full"]["Pass@1 (%)"]
    assert empty["Test-Pass RS"].keys() == {"size", "Cost ($)"}


def test_the_first_table_of_daVinci_leaves_places_for_others_and_other_benchmarks(  # noqa: N802
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (table,) = tables_of_sets("davinci", tmp_path, {"verified": [evaluated("davinci-base", True)]})
    print_table(table)
    printed = capsys.readouterr().out
    assert re.search(r"^untrained +\(a\) +1\.000 +\(b\) +\(b\)", printed, re.M)
    assert [row.title for row in SETS["davinci"] if row.origin is Origin.OTHERS] == re.findall(
        r"^(SWE-Smith|CC-Bench|CodeAgent) ", printed, re.M
    )


def setting(name: str, model: str | None, resolved: float, steps: float, against: bool = True) -> dict[str, Any]:
    figures = {
        "resolved": {"percent": resolved},
        "patches": {"percent": 92.4},
        "steps": steps,
        "usd_per_100": {"both": None if name == "S" else 2.5},
    }
    apart = {"resolved": {"value": resolved - 40.0}, "steps": {"value": steps - 38.64}} if against else None
    return {"setting": name, "variant": name, "model": model, "figures": figures, "against_base": apart}


def test_the_table_of_guidance_is_the_second_where_the_model_guides_itself_and_else_the_third() -> None:
    base = setting("base", None, 40.0, 38.64, against=False)
    report = {
        "groups": [
            {"model": "m", "choices": {"tools": "full"}, "settings": [base, setting("D", "m", 38.8, 33.12)]},
            {"model": "m", "choices": {}, "settings": [base, setting("S", "expert", 45.8, 51.54)]},
        ]
    }
    second, third = (table_row(table) for table in tables_of_guidance(report))
    assert second["table"] == "SWE-PRM, table 2: policy m"
    assert third["table"] == "SWE-PRM, table 3: policy m, PRM expert"
    assert [row["setting"] for row in second["rows"]] == ["base", "D", *(name for name in OPEN_PRM if name != "D")]
    assert [row["setting"] for row in third["rows"]] == ["base", "base: expert", "S", "D", "DR"]
    assert second["rows"][1]["figures"] == {
        "resolved (%)": 38.8,
        "patches (%)": 92.4,
        "steps": 33.12,
        "USD per 100": 2.5,
    }
    assert set(third["rows"][1]["empty"].values()) == {NOT_ALONE}
    assert third["rows"][2]["figures"]["USD per 100"] is None
    assert set(third["rows"][3]["empty"].values()) == {NOT_ROLLED_OUT}


def test_one_sweep_of_several_policies_and_guides_gives_a_table_2_and_a_table_3_of_each() -> None:
    def base(resolved: float) -> dict[str, Any]:
        return setting("base", None, resolved, 38.64, against=False)

    of_small = [base(40.0), setting("D", "small", 38.8, 33.12), setting("D", "expert", 50.6, 37.99)]
    for number, row in enumerate(of_small[1:], 1):
        row["setting"] = f"D.{number}"
    groups = [
        {"model": "small", "choices": {"steps": 75}, "settings": of_small},
        {"model": "other", "choices": {"steps": 75}, "settings": [base(34.0), setting("D", "other", 34.2, 37.89)]},
        {"model": "expert", "choices": {"steps": 75}, "settings": [base(66.6)]},
    ]
    second, third, other = (table_row(table) for table in tables_of_guidance({"groups": groups}))
    assert (second["table"], other["table"]) == (
        "SWE-PRM, table 2: policy small",
        "SWE-PRM, table 2: policy other",
    )
    assert [row["setting"] for row in second["rows"]][:2] == ["base", "D"]
    assert second["rows"][1]["figures"]["resolved (%)"] == 38.8
    assert [row["setting"] for row in third["rows"]] == ["base", "base: expert", "D", "S", "DR"]
    assert [row["figures"]["resolved (%)"] for row in third["rows"][:3]] == [40.0, 66.6, 50.6]
    elsewhere = [*groups[:2], groups[2] | {"choices": {"steps": 100}}]
    tables = [table_row(table) for table in tables_of_guidance({"groups": elsewhere})]
    assert set(tables[1]["rows"][1]["empty"].values()) == {NOT_ALONE}, "other options are no comparison"
    assert tables[-1]["table"].endswith("policy expert"), "and its figures stand apart"


def test_differences_to_base_stand_beside_the_figures_and_nothing_shared_is_no_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unshared = setting("S", "m", 0, 0) | {"figures": None, "against_base": None}
    base = setting("base", None, 40.0, 38.64, against=False)
    (table,) = tables_of_guidance(
        {"groups": [{"model": "m", "choices": {}, "settings": [base, setting("D", "m", 50.6, 37.99), unshared]}]}
    )
    print_table(table)
    printed = capsys.readouterr().out
    assert re.search(r"^D +50\.6 \(\+10\.6\) +92\.4 +37\.99 \(-0\.65\) +2\.50$", printed, re.M)
    assert NOT_SHARED in printed


def test_without_any_rollout_the_table_of_guidance_has_no_figure() -> None:
    (table,) = tables_of_guidance({"groups": []})
    assert {why for row in table_row(table)["rows"] for why in row["empty"].values()} == {NOT_ROLLED_OUT}
