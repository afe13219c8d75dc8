"""What windows of curated trajectories come to, by the settings that they were grown with: sizes of the trajectories
(P2T, section 5.4), what was committed, and how often each gate takes a rewritten step out (appendix H)."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from statistics import mean
from typing import Any

from prchain.core.console.terminal import counted, say, say_prose, say_table
from sql.store import Store, Transaction
from sql.tables import CurationCandidate, CurationWindow
from trajectories.curation.graphs.svg import bars_svg
from trajectories.curation.windows.candidates import MALFORMED, NO_PLACE, NO_REPLY, UNGROUNDED
from trajectories.curation.windows.grounding import ENTITIES
from trajectories.curation.windows.selection import HowChosen
from trajectories.export.masks import DEFAULT_MASKS
from trajectories.studies.curation.recipes import RecipeAttempt, recipe_attempts, sample_size
from trajectories.studies.curation.study_files import Study

_WIDTH = 80

PAPER = "The paper: code takes out 13.4% of rewritten steps. Here the judge reads none that code took out."


@dataclass(slots=True)
class WindowFigures:
    """The curated trajectories of one agent's model and one choice of settings."""

    model: str
    settings: str
    """See `trajectories.curation.windows.settings`."""
    tried: int = 0
    samples: int = 0
    """Those that were kept, and whose tests passed."""
    steps: float | None = None
    """Of a sample, on average; likewise the next three."""
    tokens: float | None = None
    """Of its replies; None where those of a turn are not known."""
    length: float | None = None
    """These and all that it was told, estimated by bytes: tokens of a trajectory (section 5.4)."""
    effectiveness: float | None = None
    windows: int = 0
    """Those in which a candidate was committed."""
    floor: int = 0
    fallback: int = 0
    random: int = 0
    plain: int = 0
    variants: int = 0
    """Windows that committed a candidate with a rewritten step."""
    written: int = 0
    """Rewritten steps."""
    malformed: int = 0
    """Those that break a rule of form, of which no gate reads."""
    by_code: int = 0
    """Those that name what was not shown."""
    by_judge: int = 0
    """Those that code let pass and the judge did not."""
    grounded: int = 0
    """Those that both let pass."""

    @property
    def code_share(self) -> float | None:
        """Of the steps that code read."""
        return _share(self.by_code, self.by_code + self.by_judge + self.grounded)

    @property
    def judge_share(self) -> float | None:
        """Of the steps that the judge read."""
        return _share(self.by_judge, self.by_judge + self.grounded)


@dataclass(slots=True)
class _Grown:
    """What stands in the database of the windows of one trajectory."""

    how: Counter[str] = field(default_factory=Counter)
    effectiveness: float = 0.0
    committed: dict[tuple[int, int], tuple[int | None, int]] = field(default_factory=dict)
    """Stage and window to the chosen candidate and its committed steps."""
    variants: int = 0
    gates: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)


_GATES = ("written", "malformed", "by_code", "by_judge", "grounded")


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def window_figures(tx: Transaction, repository: str | None = None) -> tuple[list[WindowFigures], dict[str, int]]:
    """The figures by model and settings; and how many rewritten steps broke each rule."""
    attempts = [it for it in recipe_attempts(tx, repository).attempts if it.curated]
    grown = _grown(tx, {it.id for it in attempts})
    groups: dict[tuple[str, str], list[RecipeAttempt]] = {}
    for attempt in attempts:
        groups.setdefault((attempt.model, attempt.windows or ""), []).append(attempt)
    rules = sum((it.rules for it in grown.values()), Counter[str]())
    lines = [_line(tx, *key, of, grown) for key, of in sorted(groups.items())]
    return lines, dict(sorted(rules.items()))


def _line(
    tx: Transaction,
    model: str,
    settings: str,
    attempts: Sequence[RecipeAttempt],
    grown: Mapping[str, _Grown],
) -> WindowFigures:
    samples = [it for it in attempts if it.passed]
    sizes = [sample_size(tx, it, DEFAULT_MASKS) for it in samples]
    known = [(size.tokens, size.tokens + size.told) for size in sizes if size.tokens is not None]
    whole = bool(known) and len(known) == len(sizes)
    mine = [grown[it.id] for it in attempts]
    how = sum((it.how for it in mine), Counter[str]())
    gates = sum((it.gates for it in mine), Counter[str]())
    return WindowFigures(
        model,
        settings,
        len(attempts),
        len(samples),
        mean(size.steps for size in sizes) if sizes else None,
        mean(own for own, _ in known) if whole else None,
        mean(length for _, length in known) if whole else None,
        round(mean(grown[it.id].effectiveness for it in samples), 4) if samples else None,
        windows=how.total(),
        **{str(kind): how[kind] for kind in HowChosen},
        variants=sum(it.variants for it in mine),
        **{name: gates[name] for name in _GATES},
    )


def _grown(tx: Transaction, names: set[str]) -> dict[str, _Grown]:
    found = {name: _Grown() for name in names}
    columns = ("trajectory_id", "position", "number", "chosen", "how", "committed")
    for name, position, number, chosen, how, committed in tx.rows(CurationWindow, *columns):
        if name in found:
            found[name].how.update([how] if how else [])
            found[name].committed[position, number] = chosen, committed
    place = ("trajectory_id", "position", "window_number", "number")
    told = ("seed", "outcome", "grounded", "faults", "progress")
    for name, position, window, number, seed, outcome, grounded, faults, progress in tx.rows(
        CurationCandidate, *place, *told
    ):
        if name not in found:
            continue
        of = found[name]
        chosen, committed = of.committed[position, window]
        if number == chosen:
            of.effectiveness += sum(step["progress"] for step in progress[:committed])
            of.variants += number != seed
        if number != seed:
            rules = {fault["rule"] for fault in faults}
            of.gates.update(_gates(outcome, grounded, rules))
            of.rules.update(rules)
    return found


def _gates(outcome: str, grounded: bool | None, rules: set[str]) -> list[str]:
    """What a variant counts as."""
    if outcome in {NO_PLACE, NO_REPLY}:
        return []
    if outcome == MALFORMED:
        return ["written", "malformed"]
    if outcome == UNGROUNDED:
        return ["written", "by_code" if ENTITIES in rules else "by_judge"]
    return ["written", "grounded"] if grounded else ["written"]


def study_windows(store: Store, repository: str | None = None) -> Study:
    """The study `windows`."""
    with store.reading() as tx:
        lines, rules = window_figures(tx, repository)
    shares = ("code_share", "judge_share")
    rows = [{**asdict(line), **{name: getattr(line, name) for name in shares}} for line in lines]
    return Study({"settings": rows, "rules": rules}, _rows(rows), _drawings(lines, rules), print_windows_study)


def _rows(lines: Sequence[Mapping[str, Any]]) -> str:
    """CSV: one row for each choice of settings."""
    text = io.StringIO()
    names = [*(it.name for it in fields(WindowFigures)), "code_share", "judge_share"]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _drawings(lines: Sequence[WindowFigures], rules: Mapping[str, int]) -> dict[str, str]:
    steps = {f"{number}: {line.settings}": line.steps or 0.0 for number, line in enumerate(lines, 1)}
    return {
        "steps": bars_svg("Steps of a curated trajectory by settings", steps, [f"{it:,.1f}" for it in steps.values()]),
        "gates": bars_svg("Rewritten steps by the rule that they break", rules, [str(it) for it in rules.values()]),
    }


def print_windows_study(study: Mapping[str, Any]) -> None:
    """Print the study in 80 columns."""
    lines = study["settings"]
    if not lines:
        say("no curated trajectory")
        return
    for number, line in enumerate(lines, 1):
        say_prose(f"{number}: {line['model']}, windows: {line['settings']}", width=_WIDTH, further=3)
    say_table(
        ("", "tried", "samples", "steps", "tokens", "length", "Eff"),
        [
            (
                number,
                line["tried"],
                line["samples"],
                _number(line["steps"], 1),
                _number(line["tokens"], 0),
                _number(line["length"], 0),
                _number(line["effectiveness"], 2),
            )
            for number, line in enumerate(lines, 1)
        ],
    )
    kinds = [str(kind) for kind in HowChosen]
    say()
    say_table(
        ("committed", "windows", *kinds, "with a rewritten step"),
        [
            (number, *(line[name] for name in ("windows", *kinds)), _of(line["variants"], line["windows"]))
            for number, line in enumerate(lines, 1)
        ],
    )
    say()
    say_table(
        ("rewritten", "steps", "of bad form", "out by code", "out by judge", "grounded"),
        [
            (
                number,
                line["written"],
                line["malformed"],
                _of(line["by_code"], line["by_code"] + line["by_judge"] + line["grounded"]),
                _of(line["by_judge"], line["by_judge"] + line["grounded"]),
                line["grounded"],
            )
            for number, line in enumerate(lines, 1)
        ],
    )
    if study["rules"]:
        say_prose("rules: " + ", ".join(f"{rule} {count:,}" for rule, count in study["rules"].items()), width=_WIDTH)
    say_prose(
        f"Steps, tokens of replies, length (tokens of all messages, by bytes but for replies) and Eff are means of "
        f"{counted(sum(it['samples'] for it in lines), 'sample')}. {PAPER}",
        width=_WIDTH,
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _of(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f}%)" if whole else "-"
