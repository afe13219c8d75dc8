"""`--proof` chooses chains and trajectories by what their proofs are worth, and changes nothing of what is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from environments.proofs.proof_rows import ChainProof, StageProof, write_proof, write_strength
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.duels import HeldTest
from environments.suites.outcomes import ClassifiedTests
from prchain.core.errors import UsageError
from prchain.core.safeguards import SURE_RULES
from sql.outcomes import PROVED
from sql.proof_filter import ProofFilter
from sql.store import Store
from sql.strength import Strength, UndoingKind, UndoingOutcome, Undone
from sql.tables import Verdict
from sql.taken_proofs import meeting, taken
from tests.trajectories.graphworld import graph_world
from tests.trajectories.rolloutworld import STAGES, rollout_world
from tests.trajectories.sampleworld import sample_world
from tests.trajectories.test_export import run_export
from trajectories.task import read_texts

STRONG = Strength(1, undone=tuple(Undone(UndoingKind.HUNK, f"a.py:{n}", UndoingOutcome.CAUGHT) for n in range(3)))
IMPORT_ONLY = Strength(0, hidden=("a",))


TOLD = RunnerBaseline(held=(HeldTest("a", "a", (), ((0, "=text"),), tells=True, sure_by=SURE_RULES),))


def prove(store: Store, chain: str, *strengths: Strength | None, known: RunnerBaseline = TOLD) -> None:
    proof = StageProof(0, PROVED, classes=ClassifiedTests(f2p=("a",)), baseline=known)
    stages = tuple(replace(proof, position=place, strength=it) for place, it in enumerate(strengths, 1))
    with store.transaction() as tx:
        write_proof(tx, ChainProof(chain, PROVED, None, stages), "local")


def test_rollouts_take_chains_whose_every_stage_is_proved_so(tmp_path: Path) -> None:
    with rollout_world(tmp_path) as world:
        context, chain, length = world.context(), world.chains[0], STAGES
        prove(world.store, chain, *[STRONG] * (length - 1), None)
        pending = world.run(context).pending()
        assert pending.units and pending.weak == 0 and "1 not_measured" in str(pending.doubts)
        with world.store.reading() as tx:
            texts = read_texts(tx)
        for strength, taken in ((IMPORT_ONLY, {"any", "told"}), (STRONG, {"any", "own", "caught", "told"})):
            with world.store.transaction() as tx:
                write_strength(tx, chain, length, strength)
            for wanted in ProofFilter:
                found = world.run(context, proof=wanted).pending()
                assert bool(found.units) == (wanted in taken) and found.weak == (wanted not in taken)
        assert found.doubts == ()
        with world.store.reading() as tx:
            assert read_texts(tx) == texts, "the proof that an id holds is the same"


def test_who_rolls_out_where_nothing_guards_grades_is_told_so(tmp_path: Path) -> None:
    with rollout_world(tmp_path) as world:
        context, chain = world.context(), world.chains[0]
        prove(world.store, chain, *[STRONG] * STAGES, known=RunnerBaseline())
        for wanted in (ProofFilter.ANY, ProofFilter.CAUGHT):
            (told,) = world.run(context, proof=wanted).pending().doubts
            assert told.startswith(f"what guards the grades of {STAGES} stages: {STAGES} none; ")
        found = world.run(context, proof=ProofFilter.TOLD).pending()
        assert (found.units, found.weak, found.doubts) == ((), 1, ())


def test_a_chain_that_is_named_and_proved_by_an_import_alone_is_refused(tmp_path: Path) -> None:
    with rollout_world(tmp_path) as world:
        chain = world.chains[0]
        prove(world.store, chain, *[IMPORT_ONLY] * STAGES)
        with pytest.raises(UsageError, match="is worth less than --proof own"):
            world.run(world.context(), chain=chain, proof=ProofFilter.OWN).pending()


def test_a_stage_that_is_not_proved_is_not_taken_nor_one_that_nobody_measured_for_its_strength(tmp_path: Path) -> None:
    with rollout_world(tmp_path) as world, world.store.reading() as tx:
        chain = world.chains[0]
        prove(world.store, chain, *[STRONG] * (STAGES - 2), None)
        assert meeting(tx, world.chains, ProofFilter.OWN) == meeting(tx, world.chains, ProofFilter.TOLD) == []
        assert meeting(tx, world.chains, ProofFilter.ANY) == list(world.chains)
        last = STAGES - 1
        for wanted, measured, unmeasured in (("own", True, False), ("caught", True, False), ("told", True, True)):
            takes = taken(tx, ProofFilter(wanted))
            assert [takes(chain, it) for it in ([1], [1, last], [last], [STAGES], [])] == [
                measured,
                unmeasured,
                unmeasured,
                False,
                False,
            ]


def test_curate_refuses_a_named_chain_too(tmp_path: Path) -> None:
    with graph_world(tmp_path) as world:
        chain = world.rollouts.chains[0]
        with pytest.raises(UsageError, match="is worth less than --proof own"):
            world.run(chain=chain, proof=ProofFilter.OWN).pending()


def test_exports_ask_only_for_the_stages_that_a_sample_holds(tmp_path: Path) -> None:
    with sample_world(tmp_path) as world:
        world.chain("c1")
        world.trajectory("t1", "c1", outcome="accepted_prefix", accepted=1)
        rows, report = run_export(world, tmp_path, proof=ProofFilter.OWN)
        assert rows == [] and report.left_out == {"weak_proof": 1}, "nothing is proved"
        prove(world.store, "c1", STRONG, IMPORT_ONLY)
        rows, report = run_export(world, tmp_path, proof=ProofFilter.CAUGHT)
        assert [stage["proof"] for stage in rows[0]["metadata"]["stages"]] == ["strong"]
        assert report.card["proofs"] == {"strong": 1} and report.card["options"]["proof"] == "caught"
        assert report.card["safeguards"] == {}, "no hidden tests ran"
        with world.store.transaction() as tx:
            kept = {"tests": "passed", "grade": {"outcome": "passed", "safeguard": "told"}}
            tx.connection.execute(update(Verdict).where(Verdict.trajectory_id == "t1").values(**kept))
        rows, report = run_export(world, tmp_path, proof=ProofFilter.TOLD)
        assert [stage["safeguard"] for stage in rows[0]["metadata"]["stages"]] == ["told"]
        assert report.card["safeguards"] == {"told": 1}
        prove(world.store, "c1", None, IMPORT_ONLY)
        rows, report = run_export(world, tmp_path)
        assert len(rows) == 1 and report.card["proofs"] == {"not_measured": 1}
