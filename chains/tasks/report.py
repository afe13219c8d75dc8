"""What people read of tasks: the list, and the page of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import Any

from sqlalchemy import select

from chains.addresses import pull_request_url
from chains.reference_patches import print_reference
from chains.tasks.export import cost_of, proved_f2p
from chains.tasks.model import StageQuery, TaskDraft
from chains.tasks.query import overview_subject, stage_subject
from chains.tasks.rows import read_draft, read_task_chain
from chains.tasks.said import UNUSABLE, last_reply, last_screening
from chains.tasks.screening import screening_words
from chains.tasks.texts import read_title
from prchain.core.code.needs import Need, interface_of, unmet, verdict_of
from prchain.core.console.terminal import (
    counted,
    dollars,
    say,
    say_facts,
    say_prose,
    say_some,
    say_table,
    say_text,
    summed,
)
from prchain.core.errors import UsageError
from prchain.core.llm.purposes import REVIEW, SCREEN
from sql.chosen import find_chain
from sql.outcomes import READY
from sql.store import Store, Transaction
from sql.strength import read_strengths, strength_row, strength_words
from sql.tables import Chain, ChainStage, Repository, Selection, Task

_WIDTH = 104
"""Characters of a line of an overview or a query, with its indent."""

_SHOWN = 20


def list_tasks(
    store: Store, strategy: str | None = None, repository: str | None = None, outcome: str | None = None
) -> list[dict[str, Any]]:
    """One row a task: chain, repository, numbers, outcome; by repository and chain id."""
    query = (
        select(Task.chain_id, Task.outcome, Task.reason, Task.attempts, Repository.owner, Repository.name)
        .join(Chain, Chain.id == Task.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
    )
    if outcome is not None:
        query = query.where(Task.outcome == outcome)
    if strategy is not None:
        query = query.where(Task.chain_id.in_(select(Selection.chain_id).where(Selection.strategy == strategy)))
    with store.reading() as tx:
        numbers: dict[str, list[int]] = {}
        for chain_id, _, number in tx.rows(ChainStage, "chain_id", "position", "number"):
            numbers.setdefault(chain_id, []).append(number)
        rows = [
            {
                "chain_id": chain_id,
                "repository": f"{owner}/{name}",
                "numbers": numbers.get(chain_id, []),
                "outcome": task_outcome,
                "reason": reason,
                "attempts": attempts,
            }
            for chain_id, task_outcome, reason, attempts, owner, name in tx.connection.execute(query)
            if repository is None or f"{owner}/{name}".lower() == repository.lower()
        ]
    return sorted(rows, key=lambda row: (row["repository"].lower(), row["chain_id"]))


def print_tasks(rows: list[dict[str, Any]]) -> None:
    """Print the list, and below it the number of tasks of each outcome."""
    names = ("chain_id", "outcome", "repository")
    lines = [(*map(row.get, names), " > ".join(f"#{number}" for number in row["numbers"])) for row in rows]
    if rows:
        say_table(("chain", "outcome", "repository", "pull requests"), lines)
    say(summed("task", (row["outcome"] for row in rows)))


def task_page(store: Store, prefix: str) -> dict[str, Any]:
    """Everything stored of one task, by its chain's id or the beginning of it. Raises `UsageError`."""
    with store.reading() as tx:
        chain_id = find_chain(tx, prefix)
        chain, draft = read_task_chain(tx, chain_id), read_draft(tx, chain_id)
        if draft is None:
            raise UsageError(f"chain {chain_id} has no task yet; run `prchain tasks build`")
        model, prompts, created = next(iter(tx.rows(Task, "model", "prompts", "created_at", chain_id=chain_id)))
        queries = {stage.position: stage for stage in draft.stages}
        f2p, proofs = proved_f2p(tx, chain_id), read_strengths(tx, chain_id).get(chain_id, {})
        return {
            "chain_id": chain_id,
            "repository": chain.full_name,
            "language": chain.language,
            "licence": chain.licence,
            "outcome": draft.outcome,
            "reason": draft.reason,
            "overview": draft.overview,
            "said": last_reply(tx, overview_subject(chain_id)) if draft.outcome in UNUSABLE and _ready(draft) else None,
            "findings": list(draft.findings),
            "screening": last_screening(tx, chain_id) if SCREEN in prompts else None,
            "attempts": draft.attempts,
            "model": model,
            "prompts": prompts,
            "reviewed": REVIEW in prompts,
            "created": created,
            "cost": cost_of(tx, chain_id).model_dump(),
            "stages": [
                {
                    "position": stage.position,
                    "number": stage.number,
                    "title": read_title(tx, chain.repository_id, stage.number, stage.landed_sha),
                    "url": pull_request_url(chain.host, chain.full_name, stage.number),
                    "base_sha": stage.base_sha,
                    "landed_sha": stage.landed_sha,
                    "landed_at": stage.landed_at,
                    **_link(tx, chain_id, stage.position),
                    **_query_fields(queries.get(stage.position), f2p.get(stage.position)),
                    "proof": strength_row(proofs[stage.position]) if stage.position in proofs else None,
                    "proof_words": strength_words(proofs[stage.position]) if stage.position in proofs else "",
                    "said": _said(tx, chain_id, queries.get(stage.position)),
                }
                for stage in chain.stages
            ],
        }


def _link(tx: Transaction, chain_id: str, position: int) -> dict[str, Any]:
    columns = ("relation", "confidence")
    row = next(iter(tx.rows(ChainStage, *columns, chain_id=chain_id, position=position)))
    return dict(zip(columns, row, strict=True))


def _ready(draft: TaskDraft) -> bool:
    """Whether all queries are ready, so that the overview decided the outcome."""
    return all(stage.outcome == READY for stage in draft.stages)


def _said(tx: Transaction, chain_id: str, stage: StageQuery | None) -> dict[str, Any] | None:
    """What the model said last of a stage whose reply could not be used."""
    if stage is None or stage.outcome not in UNUSABLE:
        return None
    return last_reply(tx, stage_subject(chain_id, stage.position))


def _query_fields(stage: Any, f2p: Collection[str] | None) -> dict[str, Any]:
    names = ("outcome", "reason", "plan", "query", "files", "findings", "attempts")
    needs: tuple[Need, ...] = getattr(stage, "needs", ())
    lacking = unmet(getattr(stage, "query", None) or "", needs, "appended", f2p)
    return {
        **{name: getattr(stage, name, None) for name in names},
        "interface": [need.row() for need in interface_of(needs)],
        "unmet": [need.row() for need in lacking],
        "verdict": verdict_of(lacking),
        "needs_of": "patch" if f2p is None else "f2p",
    }


def print_task(page: dict[str, Any], references: Sequence[bytes] = ()) -> None:
    """Print the page of a task, with a patch after each stage where there are some.

    The plan is not part of it: it may contain the solution.
    """
    numbers = " > ".join(f"#{stage['number']}" for stage in page["stages"])
    say(f"task {page['chain_id']}  {page['repository']}  {numbers}")
    cost = page["cost"]
    tokens = f"{cost['tokens_in']:,} tokens in, {cost['tokens_out']:,} out"
    say_facts(
        {
            "outcome": _task_outcome(page),
            "language": f"{page['language'] or 'unknown'}, licence {page['licence'] or 'unknown'}",
            "made": f"{page['created']} by {page['model'] or 'no model'}",
            "cost": f"{counted(cost['calls'], 'call')}, {tokens}, {dollars(cost['usd'])}",
            "checked by": "the leak check, and the reviewer (queries)" if page["reviewed"] else "the leak check",
        }
    )
    if page["screening"]:
        _print_list("screening", list(screening_words(page["screening"])))
    _print_text("overview", page["overview"], page["findings"])
    _print_said(page["said"])
    for stage, reference in zip_longest(page["stages"], references):
        say()
        say(f"stage {stage['position']}: #{stage['number']} {stage['title']}")
        follows = f"by {stage['relation']}, confidence {stage['confidence'] or 0:.2f}" if stage["relation"] else ""
        say_facts(
            {
                "outcome": _outcome_text(stage),
                "page": stage["url"],
                "base": stage["base_sha"],
                "landed": f"{stage['landed_sha']}, {stage['landed_at']}",
                "follows": follows,
                "proof": stage["proof_words"],
            }
        )
        _print_list("files", stage["files"] or [])
        _print_list("interface", [Need.from_row(row).words() for row in stage["interface"]])
        told = [row for row in stage["unmet"] if row["kind"] != "unseen"]
        _print_list(
            f"not told, though hidden tests ({stage['needs_of']}) need it",
            [f"{Need.from_row(row).words()} ({row.get('withheld') or 'not told'})" for row in told],
        )
        unseen = [f"{row['text']} ({row['withheld']})" for row in stage["unmet"] if row["kind"] == "unseen"]
        _print_list("hidden tests whose needs are not known", unseen)
        _print_text("query", stage["query"], stage["findings"] or [])
        _print_said(stage["said"])
        if reference is not None:
            print_reference(stage, reference)


def _task_outcome(page: dict[str, Any]) -> str:
    """Where a stage failed, which one: the stage itself tells why."""
    for stage in page["stages"]:
        place = f"stage {stage['position']}"
        if stage["reason"] and page["reason"] == f"{place}: {stage['reason']}":
            return f"{page['outcome']} ({place})"
    return _outcome_text(page)


def _outcome_text(row: dict[str, Any]) -> str:
    return f"{row['outcome']} ({row['reason']})" if row["reason"] else str(row["outcome"])


def _print_list(title: str, items: list[str]) -> None:
    if items:
        say(f"  {title}")
        say_some(items, _SHOWN)


def _print_text(title: str, text: str | None, findings: list[dict[str, Any]]) -> None:
    say(f"  {title:<9} {'none' if not text else ''}".rstrip())
    for paragraph in (text or "").splitlines():
        say_prose(paragraph, indent=4, further=0, width=_WIDTH, hyphens=True)
    for finder, heading in (("check", "leak check"), ("review", "reviewer")):
        found = [finding for finding in findings if finding.get("by", "check") == finder]
        if found:
            say(f"  {heading}")
            say_some([_finding_text(finding) for finding in found], _SHOWN)


def _print_said(said: dict[str, Any] | None) -> None:
    """Print a reply that could not be used, whole."""
    if said is None:
        return
    calls = f", calling {', '.join(said['tool_calls'])}" if said["tool_calls"] else ""
    say(f"  the last reply, which could not be used ({said['purpose']}, {said['model']}, {said['finish']}{calls}):")
    say_text(said["text"] or "(no text)", indent=4)
    if said["reasoning"]:
        say("  its reasoning:")
        say_text(said["reasoning"], indent=4)


def _finding_text(finding: dict[str, Any]) -> str:
    why = f" ({finding['why']})" if finding.get("why") else ""
    return f"{finding['severity']}: {finding['kind']} in {finding['text']}: {finding['evidence']}{why}"
