"""The demo from end to end: each step prints its purpose and its command, and runs it as a shell would."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from prchain.core.console.terminal import say, say_facts, say_whole, tally
from prchain.core.errors import DemoStopped
from prchain.core.settings import Settings, variable
from prchain.demo.backend import ChosenBackend, choose
from prchain.demo.beside import beside, curated_of, plain_of
from prchain.demo.cheats import print_cheats
from prchain.demo.commands import CHEATED_CHAIN, GRAPH_CHAIN, GUIDED_CHAIN, PAGES, SAMPLES, DemoCommand, demo_commands
from prchain.demo.folder import LIBRARY, SCRIPT, claim, prepare
from prchain.demo.funnel import Funnel, read_funnel, stories
from prchain.demo.guidance import print_guidance
from prchain.demo.library import HISTORY, REPOSITORY, Style, build
from prchain.shown import command_line, run_shown, say_heading
from sql.outcomes import READY
from sql.store import Store
from sql.tables import GraphRow, Task, Trajectory
from trajectories.curation.windows.report import curated_page, print_window, took_variant
from trajectories.outcomes import KEPT

DATABASE = "prchain.db"

MODEL_VARIABLE = "DEMO_MODEL"
"""Names a real model in place of the script; without it the demo costs nothing."""

_OUTRANKING = ("db", "data_dir", "llm_script", "prompts_dir", "environments_recipes_dir", "workers")
"""Settings of the user's environment that would lead the commands away from the demo's own files."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the demo."""

    folder: Path
    backend: ChosenBackend
    funnel: Funnel
    samples: int
    seconds: float
    failed: tuple[str, ...] = ()
    """Titles or command lines of the steps that did not succeed, though the demo went on."""
    everything: bool = True

    @property
    def files(self) -> dict[str, str]:
        """Name to path of the files that the demo wrote."""
        names = {"repository": LIBRARY, "database": DATABASE, "samples": SAMPLES}
        named = list(names.items())
        named += [("data card", card.name) for card in self.folder.glob(f"{Path(SAMPLES).stem}*.card.md")]
        first = f"{PAGES}/index.html"
        named += [("pages", first)] if (self.folder / first).exists() else []
        return {what: str(self.folder / name) for what, name in named}


def run_demo(
    folder: Path,
    *,
    backend: str | None = None,
    model: str | None = None,
    everything: bool = False,
    run: Callable[[list[str]], int],
) -> Outcome:
    """Run the demo in `folder`, which is its own (`claim`); `run` runs one command line and returns its exit code.
    `everything`: with curation, guidance and a cheat.

    A second run finds everything done. Raises `DemoStopped` where a command does not end well, `UsageError` for a
    folder with other files and for a backend that does not work here, `GitError`, `StoreError`.
    """
    start_time = time.monotonic()
    user = Settings.load()
    chosen = choose(user, backend)
    claim(folder)
    fresh = build(folder / LIBRARY)
    settings = prepare(folder, chosen, user, model)
    _introduce(folder, chosen, model, fresh=fresh)
    failed: list[str] = []
    with contextlib.chdir(folder), _environment(settings, user if model else None):
        for step in demo_commands(chosen, everything=everything):
            say_heading(step.title, step.words)
            if step.command[:1] == ["export"]:
                _require(Trajectory, KEPT, f"{_who(model)} did no work that was accepted", "the export")
            succeeds = _run_command(step, run)
            if not succeeds and not step.refused:
                failed.append(step.title or command_line(step.command))
            if step.command[:2] == ["tasks", "build"]:
                _require(Task, {READY}, f"{_who(model)} wrote no task that is ready", "what follows")
            if "--prm" in step.command:
                _say_guidance(chosen.backend.workdir)
            elif _is_cheat(step):
                _say_cheats()
            elif step.command[:2] == ["rollouts", "run"] and "--chain" not in step.command:
                _say_stories()
            elif step.command[:2] == ["curate", "graphs"] and succeeds:
                _run_command(DemoCommand("", "", ["curate", "show", _first_graph()]), run)
            elif step.command[:2] == ["curate", "run"]:
                _say_curated(chosen.backend.workdir)
        with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store:
            funnel = read_funnel(store)
        samples = sum(1 for line in Path(SAMPLES).read_text(encoding="utf-8").split("\n") if line)
    return Outcome(folder, chosen, funnel, samples, time.monotonic() - start_time, tuple(failed), everything)


def print_outcome(outcome: Outcome) -> None:
    """The funnel, where the files are, and what to try next."""
    say_heading("The funnel", "From pull requests to samples; each row is made from the one above it.")
    outcome.funnel.print(outcome.samples)
    if outcome.failed:
        say_heading("What did not succeed", f"{', '.join(outcome.failed)}; the lines of each step above tell why.")
    say_heading("The files")
    say_facts(outcome.files)
    say_heading("What next")
    say("  # its prchain.toml leads every command to these files:")
    say_whole(f"  cd {shlex.quote(str(outcome.folder))}")
    program = _program()
    graphs = ["--graphs"] if outcome.backend.backend.unsafe else []
    for command in (
        ["show", f"{REPOSITORY}#8"],
        ["tasks", "list"],
        ["rollouts", "list"],
        *([["curate", "list", *graphs], ["prm", "report"]] if outcome.everything else []),
        ["status"],
        ["view", "--export", SAMPLES],
    ):
        say(f"  {shlex.join([*program, *command])}")
    if not outcome.everything:
        say("  # process graphs, windows, guidance and a cheat, on the same files, in another minute:")
        say(f"  {shlex.join([*program, 'demo', '--all', '--folder', '.'])}")
    say(f"Done in {outcome.seconds:.0f} s.")


def _program() -> list[str]:
    """The words with which a shell starts prchain as this process was started."""
    if shutil.which("prchain"):
        return ["prchain"]
    path = Path(sys.argv[0]).absolute()
    return [sys.executable, "-m", "prchain"] if path.name == "__main__.py" else [str(path)]


def _introduce(folder: Path, chosen: ChosenBackend, model: str | None, *, fresh: bool) -> None:
    styles = Counter(step.style for step in HISTORY if step.number)
    needs = "without network and without a key" if model is None else f"with the model {model}"
    say_heading("The demo", f"The whole of prchain on a small library of our own, {needs}.")
    merged = f"{styles[Style.MERGE]} merged, {styles[Style.SQUASH]} squashed and {styles[Style.OPEN]} open"
    say_facts(
        {
            "repository": f"{folder / LIBRARY}, {'made just now' if fresh else 'there from before'}",
            "with": f"{merged} pull requests, among them fixes, a fix of a fix, and a revert",
            "model": f"{model}, which may cost money" if model else f"scripted: answers from {SCRIPT}",
            "backend": f"{chosen.backend.name}: {chosen.why}",
            "folder": f"{folder}, where the commands below are run",
        }
    )


def _run_command(step: DemoCommand, run: Callable[[list[str]], int]) -> bool:
    """Run a command; returns whether it succeeded. Raises `DemoStopped` where it had to."""
    if not step.command:
        return True
    code = run_shown(step.command, run)
    if code != 0 and step.must_succeed:
        raise DemoStopped(f"`{command_line(step.command)}` ended with code {code}; what is said above tells why")
    return code == 0


def _who(model: str | None) -> str:
    return f"the model {model}" if model else "the script"


def _require(table: type[Task] | type[Trajectory], wanted: Collection[str], words: str, needing: str) -> None:
    """Raise `DemoStopped` where no row ended in one of these ways, with those in which they did end."""
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store, store.reading() as tx:
        outcomes = Counter(ended for (ended,) in tx.rows(table, "outcome"))
    if not outcomes.keys() & wanted:
        found = tally(dict(sorted(outcomes.items()))) or "none at all"
        raise DemoStopped(f"{words} ({found}), and {needing} needs one; what is said above tells why")


def _first_graph() -> str:
    """The id of the graph that was made first: those of later stages are made on the way."""
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store, store.reading() as tx:
        return str(min((started, name) for name, started in tx.rows(GraphRow, "id", "started_at"))[1])


def _say_stories() -> None:
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store:
        for line in stories(store):
            say(line)


def _say_curated(workdir: str | None) -> None:
    """The window in which a variant was taken first, else the first one; and the steps of its stage beside those of the
    plain rollout."""
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store:
        curated, plain = curated_of(store, GRAPH_CHAIN), plain_of(store, GRAPH_CHAIN)
        windows = [] if curated is None else curated_page(store, curated)["windows"]
        if curated is None or not windows:
            return
        window = next(filter(took_variant, windows), windows[0])
        say_heading("", "A window: Eff is what its steps came to in the graph, Len their tokens.")
        print_window(window)
        rewrite = next((it["rewrite"] for it in window["candidates"] if it["number"] == window["chosen"]), None)
        if rewrite:
            say_heading("", f"What the curator wrote: {rewrite['text']}")
        if plain is not None:
            say_heading("", "The steps of that stage; * is the one that the curator wrote:")
            for line in beside(store, plain, curated, window["stage"], workdir):
                say(line)


def _is_cheat(step: DemoCommand) -> bool:
    return step.command[:2] == ["rollouts", "run"] and CHEATED_CHAIN in step.command


def _say_cheats() -> None:
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store:
        print_cheats(store)


def _say_guidance(workdir: str | None) -> None:
    with closing(Store.open(f"sqlite:///{DATABASE}", create=False)) as store:
        print_guidance(store, GUIDED_CHAIN, workdir)


@contextlib.contextmanager
def _environment(settings: Mapping[str, object], user: Settings | None) -> Iterator[None]:
    """The environment without variables that outrank the demo's prchain.toml, and with the API key of `user`: the
    commands do not read the user's own file."""
    names = {variable(name) for name in (*_OUTRANKING, *settings)}
    key = user.llm_api_key.get_secret_value() if user and user.llm_api_key else None
    before = dict(os.environ)
    for name in names:
        os.environ.pop(name, None)
    if key is not None:
        os.environ[variable("llm_api_key")] = key
    try:
        yield
    finally:
        for name in {*names, variable("llm_api_key")}:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
