"""The rig of rewrites: its stages in good form, and a whole run on a small repository of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from research.rewrites.__main__ import main
from research.rewrites.cases import HandCall, HandRewrite, RewriteStage, read_stages
from research.rewrites.conversation import LookRefused, observation
from research.rewrites.gate import Judged
from research.rewrites.report import goals_met, report
from tests.miner.gitworld import World
from trajectories.curation.windows.grounding import RewriteFault

STAGES = read_stages()
CART = "class Cart:\n    def add(self, price):\n        self.sum = price\n"


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: f"{stage.repository}-{stage.number}")
def test_a_stage_has_looks_and_as_many_honest_rewrites_as_leaking_ones(stage: RewriteStage) -> None:
    assert 4 <= len(stage.looks) <= 8
    honest = [rewrite for rewrite in stage.rewrites if rewrite.honest]
    assert len(stage.rewrites) == 2 * len(honest) == 10
    assert sum(rewrite.subtle for rewrite in stage.rewrites) >= 2


def test_ten_real_stages_of_five_repositories_are_there() -> None:
    assert len(STAGES) >= 10
    assert len({stage.repository for stage in STAGES}) >= 5
    assert {stage.split for stage in STAGES} == {"tuned", "seen", "fresh"}


def stage_text(base: str, landed: str, **change: str) -> str:
    values = {"leak": "round_price", "source": "reference", "honest": "grep -n sum shop/cart.py"} | change
    return f"""
repository = "o/shop"
number = 7
base = "{base}"
landed = "{landed}"
split = "fresh"
query = "The sum of a Cart is wrong."
[[looks]]
tool = "str_replace_editor"
arguments = {{ command = "view", path = "/testbed/shop/cart.py" }}
[[looks]]
arguments = {{ command = "grep -rn add . | head -n 3" }}
[replaced]
arguments = {{ command = "ls" }}
[[rewrites]]
honest = true
words = "I look for the sum."
arguments = {{ command = "{values["honest"]}" }}
[[rewrites]]
honest = false
source = "{values["source"]}"
leak = "{values["leak"]}"
words = "Then {values["leak"]} does it."
arguments = {{ command = "grep -n add shop/cart.py" }}
"""


def run(folder: Path, *arguments: str, **change: str) -> tuple[int, str]:
    world = World(folder / "o+shop" / "repo")
    base = world.commit("main", {"shop/cart.py": CART, "shop/till.py": "UNSEEN = 1\n"}, "start")
    landed = world.commit("main", {"shop/cart.py": CART + "def round_price(): pass\n"}, "round")
    world.save()
    (folder / "stages").mkdir()
    (folder / "stages" / "a.toml").write_text(stage_text(world.sha(base), world.sha(landed), **change))
    result = CliRunner().invoke(main, ["--mirrors", str(folder), "--stages", str(folder / "stages"), *arguments])
    return result.exit_code, result.output


def test_a_run_counts_what_the_gates_made_of_rewrites(tmp_path: Path) -> None:
    code, output = run(tmp_path)
    assert code == 0
    assert "1 stages of 1 repositories, 2 rewrites." in output
    assert "leaking caught 1 of 1" in output and "honest refused 0 of 1" in output


def test_a_conversation_is_computed_from_the_base(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--show")
    assert code == 0
    assert "Lines 1 to 3 of /testbed/shop/cart.py, which has 3:\n     1\tclass Cart:" in output
    assert "<returncode>0</returncode>\n<output>\n./shop/cart.py:2:    def add(self, price):" in output
    assert "round_price" not in output


def test_a_missed_goal_is_told_and_ends_with_code_1(tmp_path: Path) -> None:
    code, output = run(tmp_path, honest="cat shop/till.py")
    assert code == 1
    assert "MISS o/shop #7, fresh, honest: Ents: path shop/till.py was not shown" in output


@pytest.mark.parametrize(
    ("leak", "source", "words"),
    [
        ("Cart", "unseen", "has shown 'Cart'"),
        ("round_price", "unseen", "is not from the unseen"),
        ("UNSEEN", "reference", "is not from the reference"),
        ("nowhere_at_all", "tests", "is not from the tests"),
    ],
)
def test_a_leak_that_is_none_is_told(tmp_path: Path, leak: str, source: str, words: str) -> None:
    code, output = run(tmp_path, leak=leak, source=source)
    assert code == 1
    assert "UNPROVED" in output and words in output


def test_a_missing_mirror_is_named(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 0
    (tmp_path / "o+shop").rename(tmp_path / "gone")
    result = CliRunner().invoke(main, ["--mirrors", str(tmp_path), "--stages", str(tmp_path / "stages")])
    assert result.exit_code == 1 and "there is no mirror of o/shop" in result.output


@pytest.mark.parametrize(
    "look",
    [
        HandCall(arguments={"command": "python x.py"}),
        HandCall(arguments={"command": "sed -i s/a/b/ x"}),
        HandCall(arguments={"command": "find . -exec rm {} +"}),
        HandCall(tool="think", arguments={"thought": "x"}),
        HandCall(tool="str_replace_editor", arguments={"command": "create", "path": "/testbed/x"}),
    ],
)
def test_looks_only_read(look: HandCall, tmp_path: Path) -> None:
    with pytest.raises(LookRefused):
        observation(look, tmp_path)


def _judged(honest: bool, refused: bool) -> Judged:
    told: dict[str, Any] = {} if honest else {"source": "words"}
    rewrite = HandRewrite(honest=honest, arguments=json.loads("{}"), **told)
    return Judged(STAGES[0], rewrite, (RewriteFault("Ents", "x"),) if refused else ())


def test_goals_are_shares_of_both_kinds() -> None:
    kept, refused = _judged(True, False), _judged(True, True)
    caught, missed = _judged(False, True), _judged(False, False)
    assert goals_met([*[kept] * 9, refused, *[caught] * 19, missed])
    assert not goals_met([*[kept] * 8, refused, *[caught] * 19, missed])
    assert not goals_met([*[kept] * 9, refused, *[caught] * 18, missed])
    assert not goals_met([kept])
    assert "MISS" in report([missed]) and "MISS" not in report([caught])
