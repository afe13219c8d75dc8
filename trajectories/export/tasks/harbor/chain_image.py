"""The image of a chain whose stages have different environments: that of its first stage, with what makes the others.

An environment is all that an image of dependencies has outside of the repository's folder. Those of a chain are
compared path by path, and of each a later step needs the image holds all paths in which they differ, packed, where root
alone can read. Nothing comes from a checkout. `inside.environment` switches: in the agent's container between two
steps, and in a verifier's before it grades.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, Any

from environments.sandboxes.engine import LABEL, engine_failures
from environments.workplace import Workplace
from prchain.core.errors import ImageError, UsageError
from trajectories.export.tasks.harbor.image import (
    PLACE,
    ImageFacts,
    TaskImage,
    commit,
    container_of,
    label_of,
    packed_files,
    script_of,
    task_image_name,
)
from trajectories.export.tasks.harbor.inside.environment import FILE, FOLDER, LINK, OURS, Plan, SystemEntry

CHAIN_LABEL = f"{LABEL}.harbor-chain"
"""On images of chains: a hash of all that they were made from, and the marks of their environments."""

SCRIPT = f"{PLACE}/environment.py"
ARCHIVES = f"{PLACE}/environments"
MOST_BYTES = 512 << 20
"""Of all files in the archives of one image, before they are packed."""

_PYTHON = "/usr/bin/python3 -I -S"
_WORK = "/var/tmp/prchain-environment"
_PATIENCE = 1800
_SYSTEM = ("/usr/bin/python3", "/usr/bin/git", "/etc/debian_version", "/etc/os-release", "/usr/lib/os-release")
_KEPT = ("/etc/hosts", "/var/tmp")
_LIBRARIES = ("/libc.so.", "/ld-linux")


@dataclass(frozen=True, slots=True)
class ChainImage:
    """An image by its name, with the facts of each stage's environment in it, and where that is packed: empty where it
    is the image's own."""

    name: str
    stages: tuple[ImageFacts, ...]
    archives: tuple[str, ...]

    @classmethod
    def of_one(cls, image: TaskImage, stages: int) -> ChainImage:
        """The image of stages that have one environment."""
        return cls(image.name, (image.facts,) * stages, ("",) * stages)

    def switches(self) -> tuple[str, ...]:
        """What has to be switched to behind each stage, in the container of its agent; empty for nothing."""
        numbers = [archive or archive_of(1) for archive in self.archives]
        return (*(after if after != now else "" for now, after in pairwise(numbers)), "")


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """In what listings differ; `plan` packs it of one of them."""

    plan: Plan
    sizes: tuple[int, ...]
    """Bytes of its files, of each listing."""


def difference(listings: Sequence[Mapping[str, SystemEntry]]) -> EnvironmentDifference:
    """In what systems differ; with the folders above, which have to be there."""
    paths, anew, times = set[str](), set[str](), set[str]()
    for path in set[str]().union(*listings):
        found = [known.get(path) for known in listings]
        there = [entry for entry in found if entry is not None]
        if len(there) < len(found) or len({entry.kind for entry in there}) > 1:
            paths.add(path)
            if any(entry.kind == FOLDER for entry in there):
                anew.add(path)
        elif len({entry.identity for entry in there}) > 1:
            paths.add(path)
        elif there[0].kind == FILE and len({entry.time for entry in there}) > 1:
            times.add(path)
    above = {folder for path in paths | times for folder in _above(path)} & set[str]().union(*listings)
    sizes = tuple(sum(known[path].size for path in paths if path in known) for known in listings)
    return EnvironmentDifference(Plan(tuple(sorted(paths | above)), tuple(sorted(anew)), tuple(sorted(times))), sizes)


def _above(path: str) -> Iterator[str]:
    while (path := posixpath.dirname(path)) != "/":
        yield path


def same_system(plan: Plan, listing: Mapping[str, SystemEntry], workdir: str) -> bool:
    """Whether the programs that switch, and what they stand on, are not among what differs, and no folder goes or
    begins anew in which the repository, the archives or what is not compared lies."""
    linked = listing.get("/usr/bin/python3", SystemEntry("", ""))
    known = {*_SYSTEM, f"/usr/bin/{linked.what}" if linked.kind == LINK else ""}
    if any(path in known or any(it in path for it in _LIBRARIES) for path in plan.paths):
        return False
    return not any(kept.startswith(f"{path}/") for path in plan.anew for kept in (OURS, workdir, *_KEPT))


def archive_of(number: int) -> str:
    """Where the image has the environment with this number; the first stage's has 1."""
    return f"{ARCHIVES}/{number}.gz"


def chain_image(
    client: Any, repository: str, chain_id: str, workplaces: Sequence[Workplace], images: Sequence[TaskImage]
) -> ChainImage:
    """The image of a chain, made where the engine has none of the same inputs; `workplaces` and `images` are those of
    its stages' tasks. Raises `UsageError` where it cannot have one, `ImageError`, `EngineUnavailable`."""
    names = list(dict.fromkeys(str(it.provided.image) for it in workplaces))
    numbers = [names.index(str(it.provided.image)) + 1 for it in workplaces]
    wanted = sorted({after for now, after in pairwise(numbers) if after != now})
    workdir = workplaces[0].provided.plan.workdir
    with engine_failures():
        environments = [client.images.get(name) for name in names]
    _require_alike(workplaces, images, [it.attrs["Config"] for it in environments])
    script = script_of("environment.py")
    inputs = json.dumps([images[0].facts.inputs, [it.id for it in environments], numbers, MOST_BYTES])
    whole = hashlib.sha256(inputs.encode() + script + script_of("fingerprint.py")).hexdigest()
    name = task_image_name(repository, chain_id, 0, whole)
    marks = _known_marks(client, name, whole)
    if marks is None:
        plan = _planned(client, names, wanted, workdir)
        marks = _make(client, name, whole, images[0], plan, {number: names[number - 1] for number in wanted})
    own = images[0].facts.fingerprint
    facts = (
        replace(
            images[0].facts,
            environment=image.facts.environment,
            # Those of earlier stages lie in the agent's container, and the first one's in a verifier's.
            outputs=tuple(sorted({path for it in images[: place + 1] for path in it.facts.outputs})),
            fingerprint=own if number == 1 else marks[str(number)],
        )
        for place, (number, image) in enumerate(zip(numbers, images, strict=True))
    )
    return ChainImage(name, tuple(facts), tuple("" if it == 1 else archive_of(it) for it in numbers))


def _require_alike(
    workplaces: Sequence[Workplace], images: Sequence[TaskImage], configs: Sequence[Mapping[str, Any]]
) -> None:
    """Raise `UsageError` for what no file can switch."""
    if len({it.provided.plan.workdir for it in workplaces}) > 1:
        raise UsageError("its stages' images have the repository in different folders")
    if len({(tuple(sorted(it.get("Env") or ())), it.get("User") or "") for it in configs}) > 1:
        raise UsageError("its stages' images have different variables or users, which steps share")
    if images[0].facts.user.partition(":")[0] in ("0", "root"):
        raise UsageError("its stages need different images, and an agent that is root would read what later ones hold")


def _planned(client: Any, names: Sequence[str], wanted: Sequence[int], workdir: str) -> Plan:
    """What is packed of the images. Raises `UsageError` where they differ too much."""
    listings = [_listing(client, name, workdir) for name in names]
    found = difference(listings)
    if not same_system(found.plan, listings[0], workdir):
        raise UsageError("its stages' environments differ too much: they stand on different systems")
    size = sum(found.sizes[number - 1] for number in wanted)
    if size > MOST_BYTES:
        shown, most = (f"{it / 1e6:,.0f} MB" for it in (size, MOST_BYTES))
        raise UsageError(f"its stages' environments differ too much: {shown} of files, and an image takes {most}")
    return found.plan


def _listing(client: Any, image: str, workdir: str) -> dict[str, SystemEntry]:
    files = {"environment.py": script_of("environment.py")}
    command = f"environment.py list {shlex.quote(workdir)} list"
    with _ran(client, image, files, command) as container, _file_of(container, "list") as file:
        entries = (SystemEntry(*json.loads(line)) for line in file)
        return {entry.path: entry for entry in entries}


def _make(
    client: Any, name: str, inputs: str, first: TaskImage, plan: Plan, wanted: Mapping[int, str]
) -> dict[str, Mapping[str, str]]:
    """Make the image; the marks of its environments by their numbers."""
    files = {it: script_of(it) for it in ("environment.py", "fingerprint.py")}
    packing = {**files, "plan": plan.text().encode("ascii")}
    with engine_failures():
        user = client.images.get(first.name).attrs["Config"].get("User") or ""
    marks = {}
    with container_of(client, first.name, start=False) as container:
        place = packed_files(PLACE, {"environment.py": files["environment.py"]}, ["environments"])
        with engine_failures():
            container.put_archive("/", place)
        for number, image in wanted.items():
            archive = f"{number}.gz"
            with (
                _ran(client, image, packing, f"environment.py pack plan {archive}") as packed,
                _sent(packed, archive) as file,
            ):
                with engine_failures():
                    container.put_archive(ARCHIVES, file)
                file.seek(0)
                if number > 1:
                    marks[str(number)] = _mark(client, first, files, archive, file)
        commit(container, name, CHAIN_LABEL, {"inputs": inputs, "marks": marks}, user)
    return marks


def _mark(
    client: Any, first: TaskImage, files: Mapping[str, bytes], archive: str, file: IO[bytes]
) -> Mapping[str, str]:
    """The fingerprint of the first stage's image once it is switched."""
    watched = " ".join(first.facts.watched)
    command = f"environment.py switch {archive} && {_PYTHON} fingerprint.py {watched} > mark"
    with _ran(client, first.name, files, command, file) as container, _file_of(container, "mark") as said:
        return dict(json.load(said))


@contextmanager
def _ran(
    client: Any, image: str, files: Mapping[str, bytes], command: str, archive: IO[bytes] | None = None
) -> Iterator[Any]:
    """A container in which a script of these files ran to its end, in their folder. Raises `ImageError`."""
    script = f"cd {_WORK} && {_PYTHON} {command}"
    with container_of(client, image, ["/bin/sh", "-c", script], start=False) as container:
        with engine_failures():
            container.put_archive("/", packed_files(_WORK, files))
            if archive is not None:
                container.put_archive(_WORK, archive)
            container.start()
            # The engine's client has less patience with an answer, and packing says nothing.
            status = container.wait(timeout=_PATIENCE)["StatusCode"]
            words = container.logs(tail=3).decode("utf-8", "replace").strip()[-200:]
        if status != 0:
            raise ImageError(f"the environment of {image} cannot be read or made: exit code {status}: {words}")
        yield container


@contextmanager
def _sent(container: Any, name: str) -> Iterator[IO[bytes]]:
    """A file of a container's, as the tar that the engine sends."""
    with tempfile.TemporaryFile() as file:
        with engine_failures():
            for chunk in container.get_archive(f"{_WORK}/{name}")[0]:
                file.write(chunk)
        file.seek(0)
        yield file


@contextmanager
def _file_of(container: Any, name: str) -> Iterator[IO[bytes]]:
    with _sent(container, name) as sent, tarfile.open(fileobj=sent) as archive:
        file = archive.extractfile(name)
        if file is None:
            raise ImageError(f"{name} is no file")
        with file:
            yield file


def _known_marks(client: Any, name: str, inputs: str) -> dict[str, Mapping[str, str]] | None:
    """The marks of an image that is there."""
    try:
        known = json.loads(label_of(client, name, CHAIN_LABEL) or "{}")
        return dict(known["marks"]) if known.get("inputs") == inputs else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
