"""A rollout that begins at a step of another rollout: the rows that both share.

Shared rows are copied, so that each trajectory is complete. The branch then resumes like a killed rollout: its sandbox
is made from the step's tree.
"""

from __future__ import annotations

from dataclasses import replace

from prchain.core.errors import StepUnknown, UsageError
from sql.store import Transaction
from trajectories.agents.scaffolds.scaffold import Scaffold
from trajectories.extensions import shared_entries
from trajectories.identity import Identity
from trajectories.options import RolloutOptions
from trajectories.outcomes import ACCEPTED, RUNNING
from trajectories.rollouts.standing import is_of_another_task
from trajectories.rollouts.state import RolloutState
from trajectories.rows import StageRow, read_entries, read_stages, read_trajectory, read_verdicts


def check_parent(tx: Transaction, identity: Identity, options: RolloutOptions, scaffold: Scaffold) -> RolloutOptions:
    """The options of the trajectory that `identity` branches off.

    Raises `StepUnknown` where it is not there, and `UsageError` for `options` that do not fit its conversation, and
    where the agent's prompts or tools, or the task, have changed: one conversation has one set of them.
    """
    assert identity.parent is not None
    chain_id, (name, step) = identity.chain, identity.parent
    parent = read_trajectory(tx, name)
    if parent is None or parent.chain_id != chain_id:
        raise StepUnknown(f"there is no trajectory {name} of chain {chain_id}; `prchain rollouts list` lists them")
    parent_options = RolloutOptions.from_row(parent.options)
    for flag, own, needed in (
        ("scaffold", options.scaffold, parent_options.scaffold),
        ("tools", options.tools, parent_options.tools),
    ):
        if own != needed:
            raise UsageError(f"trajectory {name} was made with --{flag} {needed}, which a branch of it needs, too")
    changed = [prompt for prompt, hash_ in scaffold.prompts.items() if parent.prompts.get(prompt) != hash_]
    changed += ["task"] if is_of_another_task(tx, name, identity) else []
    # An agent program has its own, which are known once it asks.
    changed += ["tools"] if scaffold.tools and parent.tools != [dict(tool) for tool in scaffold.tools] else []
    if changed and step > 0:
        message = f"trajectory {name} was made with other {', '.join(changed)} than there are now"
        raise UsageError(f"{message}; a branch of it would mix them")
    return parent_options


def shared(tx: Transaction, identity: Identity, options: RolloutOptions, scaffold: Scaffold) -> RolloutState:
    """The state that a branch of a stored trajectory begins with.

    The parent of `identity` is a trajectory's id and the last shared step; step 0 shares nothing. A stage whose last
    step is shared is over if it was accepted; else its last attempt is open again, and its verdict is not copied.

    Raises `StepUnknown` and `UsageError` as `check_parent`.
    """
    parent_options = check_parent(tx, identity, options, scaffold)
    assert identity.parent is not None
    name, step = identity.parent
    entries = read_entries(tx, name)
    begun = shared_entries(entries, step)
    if not begun:
        if step == 0:
            return RolloutState()
        raise StepUnknown(
            f"trajectory {name} has no step {step}; its last is {max((e.step for e in entries), default=0)}"
        )
    last = begun[-1]
    following = next(
        (entry for entry in entries[len(begun) :] if entry.position == last.position and entry.step > step),
        None,
    )
    stage_is_whole = following is None
    state = RolloutState(begun)
    verdicts = {(verdict.position, verdict.attempt): verdict for verdict in read_verdicts(tx, name)}
    for row in read_stages(tx, name):
        if row.position < last.position or (
            row.position == last.position and stage_is_whole and row.outcome == ACCEPTED
        ):
            state.stages[row.position] = row
            state.verdicts |= {key: verdict for key, verdict in verdicts.items() if key[0] == row.position}
        elif row.position == last.position:
            if not parent_options.track_steps:
                raise StepUnknown(f"trajectory {name} kept no trees of its steps; branch off at the end of a stage")
            if not options.track_steps:
                raise UsageError("without trees of steps (--sandbox track=off) a branch begins at the end of a stage")
            state.stages[row.position] = _reopened(row, last.attempt)
            state.verdicts |= {
                key: verdict for key, verdict in verdicts.items() if key[0] == row.position and key[1] < last.attempt
            }
    return state


def _reopened(row: StageRow, attempt: int) -> StageRow:
    """The row of a stage that resumes in the middle of an attempt."""
    return replace(row, outcome=RUNNING, reason=None, endings=row.endings[: attempt - 1], attempts=attempt - 1)
