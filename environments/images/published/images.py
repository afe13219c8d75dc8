"""The image of a stage that its publisher named: that one without anything an agent may not see, committed once."""

from __future__ import annotations

import json
import logging
import posixpath
import re
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

from environments.images.image_plan import ImagePlan
from environments.images.images import Image, find_image, find_tagged, quoted
from environments.images.published.commands import LANGUAGES, PublishedTests, published_tests
from environments.images.published.copies import copy_patterns
from environments.images.published.said import Published
from environments.images.recipes import Recipe
from environments.images.registry import registry_has
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import BASE_LABEL, IMAGE_LABEL, engine_failures, pull
from environments.sandboxes.leftovers import OWNER, SANDBOX, SNAPSHOT
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from environments.suites.runners.harbor import FOLDERS
from prchain.core.console.terminal import counted
from prchain.core.errors import DiskFull, ImageError, ImageMissing, NoRecipe, SandboxLimit, SandboxLost
from prchain.core.git.output import path_text

log = logging.getLogger(__name__)

RECIPE = "published"
"""What the recipe of such an image is called."""

KEPT = "/opt/prchain/kept"
"""Where such an image keeps what no commit of the repository holds: what was built in the work folder, modules."""

_OWN = "/tmp/.prchain-scrub"
_PATIENCE = 1800.0
_LIMITS = ResourceLimits(disk_bytes=32 << 30)
"""What lies in the work folder is copied once, and may be gigabytes."""

# In the tree's place nothing is replaced; some versions of cp call what they pass over a failure.
_RESTORE = f"if [ -d {KEPT} ]; then cp -a -n {KEPT}/. . || true; fi"

# The environment that the harnesses of SWE-bench's form enter before they do anything.
_ENTER = """
if [[ -r /opt/miniconda3/bin/activate && -d /opt/miniconda3/envs/testbed ]]; then
    source /opt/miniconda3/bin/activate >/dev/null 2>&1 && conda activate testbed >/dev/null 2>&1
fi
env -0
"""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_OF_SHELLS = re.compile(r"(?:PWD|OLDPWD|SHLVL|_|HOME|USER|HOSTNAME|PS1|BASH.*|PRCHAIN.*|CONDA_PROMPT_MODIFIER)")
_LONGEST = 8192


def scrub_script() -> str:
    """What takes from an image all that an agent may not see."""
    return (resources.files(__package__) / "scrub.sh").read_text(encoding="utf-8")


def own_name(repository: str, said: Published) -> str:
    """The name of the image that is made of a publisher's."""
    return said.image_name(repository, scrub_script())


def make_published(engine: Any, repository: str, said: Published, *, rebuild: bool = False) -> Image:
    """The image of ours that is made of a publisher's, made where the engine lacks it, or where `rebuild` asks for it.

    The publisher's is pulled where the engine does not have it. Raises `ImageMissing` where there is none,
    `ImageError` where it cannot be made fit, `SandboxError`.
    """
    if not said.changed:
        raise ImageError(f"no path can be read from a patch of the task, so no copy of it can be found in {said.image}")
    name = own_name(repository, said)
    if not rebuild and (found := find_image(engine, name)):
        return replace(found, cached=True)
    start = time.monotonic()
    source = _source(engine, said.image)
    log.info("making %s of %s", name, said.image)
    user = str(source.get("User") or "0")
    config = SandboxConfig(said.image, workdir="/", user="0", limits=_LIMITS)
    sandbox = DockerSandbox(config, client=engine)
    try:
        sandbox.start()
    except SandboxLost as error:
        raise ImageError(f"no command can be run in {said.image}: {error}") from None
    with sandbox:
        if said.has_own_tests:
            _make_places(sandbox)
        notes = [f"of {said.image}", *_scrub(sandbox, said, user)]
        variables = _variables(sandbox, said.workdir)
        label = {"repository": repository, "recipe": RECIPE, "as_of": None, "notes": notes}
        changes = [
            *(f"ENV {key}={quoted(value)}" for key, value in variables.items()),
            f"USER {user}",
            f"WORKDIR {json.dumps(said.workdir)}",
            *(f'LABEL {it}=""' for it in (SANDBOX, SNAPSHOT, OWNER, BASE_LABEL)),
            f"LABEL {IMAGE_LABEL}={quoted(json.dumps(label))}",
        ]
        place, _, tag = name.rpartition(":")
        with engine_failures():
            container = engine.containers.get(sandbox.name)
            conf = {"Entrypoint": [], "Cmd": ["/bin/bash"]}
            container.commit(repository=place, tag=tag, changes=changes, conf=conf)
    found = find_image(engine, name)
    if found is None:
        raise ImageError(f"the image {name} was removed by somebody else")
    return replace(found, seconds=time.monotonic() - start)


def published_plan(repository: str, said: Published, name: str, ours: Callable[[], ImagePlan]) -> tuple[ImagePlan, str]:
    """The plan for the image of ours called `name`, and a note, which may be empty.

    Nothing is installed anew: what the publisher built lies beside the tree again. The runner is that of the
    publisher's log parser, else the one of `ours`, the plan by which we would build; a recipe of the user that has a
    test command keeps it, but where a task has tests of its own. Raises `NoRecipe` where nothing tells a runner.
    """
    tests = published_tests(said.commands, said.log_parser)
    try:
        own = ours()
    except NoRecipe:
        if tests.runner is None:
            raise
        runner, language, test = tests.runner, LANGUAGES[tests.runner], ""
    else:
        runner, language = tests.runner or own.runner, own.recipe.language
        test = "" if said.has_own_tests else own.test
        tests = PublishedTests(own.runner) if test else tests
    plan = ImagePlan(
        repository=repository,
        recipe=Recipe(name=RECIPE, language=language, runner=runner, refresh=(_RESTORE,)),
        image=name,
        manifests=(),
        files={},
        variables={},
        environment=tests.variables,
        runner=tests.runner or runner,
        test=test or tests.script,
        workdir=said.workdir,
        arguments=tests.arguments,
        of=said.image,
    )
    return plan, tests.note


def _source(engine: Any, name: str) -> Mapping[str, Any]:
    """The configuration of a publisher's image, which is pulled where the engine lacks it. Raises `ImageMissing`."""
    if find_tagged(engine, name) is None:
        if not registry_has(engine, name):
            raise ImageMissing(f"the engine does not have {name}, and no registry answers for it")
        try:
            pull(engine, name)
        except DiskFull:
            raise
        except ImageError as error:
            raise ImageMissing(f"{name} cannot be pulled: {error}") from None
    with engine_failures():
        found: Mapping[str, Any] = engine.images.get(name).attrs.get("Config") or {}
    return found


def work_folder(engine: Any, image: str) -> str:
    """The folder in which a publisher's image begins its commands. Raises `ImageMissing`, and `ImageError` where it
    names none."""
    found = str(_source(engine, image).get("WorkingDir") or "/")
    if found == "/":
        raise ImageError(f"the task names no work folder, and neither does its image {image}")
    return found


def _scrub(sandbox: DockerSandbox, said: Published, user: str) -> list[str]:
    """Take away what an agent may not see; what was found, for people. Raises `ImageError`."""
    sandbox.write(f"{_OWN}/texts", copy_patterns(said.changed))
    sandbox.write(f"{_OWN}/scrub.sh", scrub_script().encode())
    variables = {"WORKDIR": said.workdir, "COMMIT": said.base_commit, "OWN": _OWN, "KEPT": KEPT}
    try:
        ran = sandbox.exec(f"bash {_OWN}/scrub.sh", timeout=_PATIENCE, cwd="/", environment=variables)
        if ran.exit_code == 0 and user not in ("0", "root"):
            places = " ".join(map(shlex.quote, (said.workdir, KEPT)))
            own = f"for it in {places}; do if [ -e $it ]; then chown -R {shlex.quote(user)} $it; fi; done"
            sandbox.exec(own, timeout=_PATIENCE, cwd="/")
    except SandboxLimit as error:
        raise ImageError(f"the image {said.image} is more than can be gone through: {error}") from None
    if ran.exit_code != 0:
        known = {3: f"it has no folder {said.workdir}", 7: "its grep cannot look for copies of the patches"}
        why = "it took too long" if ran.exit_code is None else known.get(ran.exit_code)
        why = why or f"exit code {ran.exit_code}: {ran.text.strip()[-200:]}"
        raise ImageError(f"what an agent may not see cannot be taken from the image {said.image}: {why}")
    counts = [int(word) for word in ran.text.split() if word.isdecimal()][-2:]
    kinds = "later history", "patch"
    return [f"without {counted(count, what)}" for count, what in zip(counts, kinds, strict=False) if count]


def _make_places(sandbox: DockerSandbox) -> None:
    """Make the folders that tests of their own are laid into, which whoever runs them cannot make, and empty them: an
    image may have been used before. Raises `ImageError`."""
    places = " ".join(FOLDERS)
    made = sandbox.exec(f"rm -rf -- {places} && mkdir -p -m 777 -- {places}", cwd="/", timeout=_PATIENCE)
    if made.exit_code != 0:
        raise ImageError(f"{places} cannot be made: {made.text.strip()[-200:]}")


def _variables(sandbox: DockerSandbox, workdir: str) -> dict[str, str]:
    """What commands have to find in their environment beside the image's own variables."""
    plain = _read(sandbox.exec("env -0", cwd="/").output)
    entered = _read(sandbox.exec(_ENTER, cwd="/", timeout=_PATIENCE).output)
    found = {name: value for name, value in entered.items() if plain.get(name) != value}
    # Programs of modules that were built in the work folder.
    programs = posixpath.join(workdir, "node_modules", ".bin")
    if sandbox.exec(f"test -d {shlex.quote(KEPT)}/node_modules/.bin", cwd="/").exit_code == 0:
        found["PATH"] = f"{programs}:{found.get('PATH', plain.get('PATH', ''))}"
    return found


def _read(output: bytes) -> dict[str, str]:
    pairs = (path_text(line).partition("=")[::2] for line in output.split(b"\0") if line)
    named = {name: value for name, value in pairs if _VARIABLE.fullmatch(name) and not _OF_SHELLS.fullmatch(name)}
    return {name: value for name, value in named.items() if len(value) < _LONGEST and value.isprintable()}
