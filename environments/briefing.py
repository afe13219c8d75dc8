"""What an agent is told of a stage's environment: the language's version, dependencies, and how tests are run.

Everything comes from the plan, which knows no test by name, and from the version that the language's own program tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from environments.images.image_plan import ImagePlan
from environments.images.stage_image import StageImage
from environments.sandboxes.sandbox import Sandbox
from environments.suites.package_scripts import in_one_process
from environments.suites.runner import PARENT
from environments.suites.runners import RUNNERS

_TIMEOUT = 30.0
_LONGEST = 4096
_VERSION = re.compile(r"\b[0-9]{1,4}(?:\.[0-9]{1,6}){0,3}(?:(?:a|b|rc)[0-9]{1,3})?\b", re.ASCII)
_ASK: Mapping[str, tuple[str, str]] = {
    "python": (
        "Python",
        "for it in python python3; do command -v $it >/dev/null && echo $it && exec $it --version; done; exit 1",
    ),
    "javascript": ("Node.js", "echo node; node --version"),
    "go": ("Go", "echo go; go version"),
    "rust": ("Rust", "echo cargo; rustc --version"),
    "java": ("Java", "echo java; java -version 2>&1"),
}
"""Recipes' languages, with their names and a command that prints a program's name and, below it, its version."""

FILES = "FILES"
"""Stands for test files in a command."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What is known of an environment."""

    language: str | None = None
    """With its version, as in ``Python 3.11.9``."""
    dependencies: Literal["all", "some"] | None = None
    """Whether those of the repository are installed; None where nobody installed any."""
    tests: str | None = None
    """A command that runs the tests that one names, in the runner's own words; None where there is none to type."""


def briefing(provided: StageImage, sandbox: Sandbox) -> Briefing:
    """What is known of the stage's environment. `sandbox` is of its image, and started. Raises `SandboxError`."""
    plan = provided.plan
    program, version = _version(plan.recipe.language, sandbox)
    tests = typed_command(plan)
    if tests is not None and program == "python3" and tests.startswith("python "):
        tests = tests.replace("python ", "python3 ", 1)
    dependencies: Literal["all", "some"] | None = None
    if provided.image is not None:
        dependencies = "some" if set(provided.notes) - set(provided.plan.chosen) else "all"
    return Briefing(version, dependencies, tests)


def typed_command(plan: ImagePlan) -> str | None:
    """The command by which one runs tests of a plan, with a word in the place of files; None where the recipe's own can
    only be run with our reporter."""
    runner = RUNNERS[plan.runner]
    if not plan.test:
        return runner.typed
    (program, ours), (typed_program, typed) = (text.split(" ", 1) for text in (runner.template, runner.typed))
    if plan.of:
        return None  # a publisher's command names the tests of the task
    # A recipe may start our reporter by another name of the program: `python3`, a path.
    own = plan.test.replace(f"{PARENT} ", "").replace(" -- {files}", " {files}")
    own = own.replace(*((ours, typed) if program == typed_program else (runner.template, runner.typed)))
    own = own.replace(in_one_process(ours), typed)
    return None if "{tools}" in own or "{report}" in own else own.replace("{files}", FILES).strip() or None


def _version(language: str, sandbox: Sandbox) -> tuple[str | None, str | None]:
    """The program of a language that the sandbox has, and the language with its version."""
    name, command = _ASK.get(language, ("", ""))
    if not command:
        return None, None
    result = sandbox.exec(command, timeout=_TIMEOUT, cwd="/", output_limit=_LONGEST)
    program, _, told = result.output.decode("ascii", "replace").partition("\n")
    # The interpreter is one that a repository's dependencies may have replaced: nothing but a number is taken from it.
    found = _VERSION.search(re.sub(r"\bgo(?=[0-9])|\bv(?=[0-9])", "", told)) if result.exit_code == 0 else None
    return program, None if found is None else f"{name} {found[0]}"
