"""Look for later work in what an agent of an exported task can read: its image's layers, and what steps lay there.

    python -m research.harbor.scan --db FILE [--chain ID ...]

For each proved stage, and each chain that can have steps: every file of every layer of the task's image, also one that
a later layer hides, with what git, zip, wheels and gzip packed in it; the image's own description, with its labels and
history; and of each step after the first its ``setup.sh`` as it is unpacked, and the environment that the image holds
for it, which root alone reads before: an agent cannot know it earlier. Looked for are the lines of the
references of this and later stages (source and tests) that no file of the tree has which the step begins on, nor of
those before. A file with three of them, or with all that there are, is a find. Exit code 1 where there is one.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import IO, Any

import click

from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.proofs.proof_rows import validations
from environments.sandboxes.engine import engine_failures
from prchain.core.console.terminal import say
from prchain.core.errors import PrchainError
from prchain.core.git.trees import SUBMODULE, TreeStore
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.export.tasks.harbor.chain_image import ARCHIVES, ChainImage
from trajectories.export.tasks.harbor.drift import SCRIPT
from trajectories.export.tasks.harbor.inside import environment
from trajectories.export.tasks.harbor.inside.plain_git import PlainStore
from trajectories.export.tasks.harbor.material import ChainMaterial
from trajectories.task import StageTask, read_task

_SHORTEST = 16
"""Bytes of a line without blanks at its ends: shorter ones stand anywhere."""
_ENOUGH = 3
_MOST = 64 << 20

Lines = frozenset[bytes]


def later_lines(trees: TreeStore, before: Iterable[str], references: Iterable[tuple[str, str]]) -> Lines:
    """The lines of what these references change to, that no tree `before` has."""
    known = frozenset[bytes]().union(*(_lines(text) for tree in before for text in _texts(trees, tree)))
    found: set[bytes] = set()
    for base, landed in references:
        changed = [it.new.blob for it in trees.diff(base, landed) if it.new is not None and it.new.mode != SUBMODULE]
        for text in trees.blobs(changed):
            found |= _lines(text)
    return frozenset(found - known)


def finds(later: Lines, content: bytes) -> int:
    """How many of the lines a file has; 0 where that is too few to say anything."""
    count = len(later & _lines(content))
    return count if later and count >= min(_ENOUGH, len(later)) else 0


def _lines(text: bytes) -> Lines:
    return frozenset(line for it in text.split(b"\n") if len(line := it.strip()) >= _SHORTEST)


def _texts(trees: TreeStore, tree: str) -> list[bytes]:
    return trees.blobs([it.blob for it in trees.entries(tree).values() if it.mode != SUBMODULE])


def image_files(client: Any, image: str) -> Iterator[tuple[str, bytes]]:
    """The files of all layers of an image, by layer and path, what is packed in them, and the image's descriptions."""
    with tempfile.TemporaryFile() as file:
        with engine_failures():
            for chunk in client.images.get(image).save():
                file.write(chunk)
        file.seek(0)
        with tarfile.open(fileobj=file) as saved:
            for member in saved:
                layer = saved.extractfile(member) if member.isfile() else None
                if layer is not None:
                    yield from _layer_files(layer, member.name)


def _layer_files(layer: IO[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    """What lies in a layer; a member that is none describes the image."""
    try:
        files = tarfile.open(fileobj=layer)  # noqa: SIM115  closed below
    except tarfile.ReadError:
        layer.seek(0)
        text = layer.read()
        with suppress(ValueError):
            text = b"\n".join(_texts_of_json(json.loads(text)))
        yield name, text
        return
    with files:
        for member in files:
            sealed = _is_sealed(member)
            content = files.extractfile(member) if member.isfile() and (sealed or member.size <= _MOST) else None
            if content is not None and sealed:
                yield from archive_files(f"/{member.name}", content)
            elif content is not None:
                place = f"{name[:12]}:{member.name}"
                for text in unpacked(content.read()):
                    yield place, text


def _is_sealed(member: tarfile.TarInfo) -> bool:
    """Whether it is an environment of a chain's that no agent reads before its step."""
    return f"/{member.name}".startswith(f"{ARCHIVES}/") and member.uid == 0 and member.mode & 0o077 == 0


def archive_files(archive: str, file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """The files that are packed in an environment of a chain's, their places beginning with the archive's."""
    for entry, blocks in environment.unpacked(file):
        if entry.size <= _MOST:
            for text in unpacked(b"".join(blocks)):
                yield f"{archive}:{entry.path}", text


def _texts_of_json(value: Any) -> Iterator[bytes]:
    match value:
        case str():
            yield value.encode()
        case list():
            for it in value:
                yield from _texts_of_json(it)
        case dict():
            yield from _texts_of_json([*value.keys(), *value.values()])


def unpacked(content: bytes) -> Iterator[bytes]:
    """A file, and what it holds where it is one of git's or an archive."""
    yield content
    if content[:4] == b"PACK":
        with tempfile.TemporaryDirectory() as folder, suppress(PrchainError):
            yield from pack_objects(content, Path(folder))
    elif content[:1] == b"x":
        with suppress(zlib.error):
            yield zlib.decompress(content)
    elif content[:2] == b"\x1f\x8b":
        with suppress(zlib.error):
            yield zlib.decompressobj(wbits=31).decompress(content, _MOST)
    elif content[:4] == b"PK\x03\x04":
        with (
            suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError),
            zipfile.ZipFile(io.BytesIO(content)) as it,
        ):
            yield b"\n".join(it.read(inner) for inner in it.infolist() if inner.file_size <= _MOST)


def pack_objects(pack: bytes, folder: Path) -> Iterator[bytes]:
    """The objects of a pack, in one text."""
    store = PlainStore.made(folder / "objects.git")
    with tempfile.TemporaryFile() as file:
        file.write(pack)
        file.seek(0)
        store.take_pack(file)
    with store.stream("cat-file", "--batch-all-objects", "--batch") as output:
        yield output.read()


def script_files(script: bytes) -> Iterator[tuple[str, bytes]]:
    """What the script between two steps holds."""
    packed = base64.b64decode(script.split(b"\n# packed\n", 1)[1])
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for name in archive.namelist():
            for text in unpacked(archive.read(name)):
                yield f"{SCRIPT}:{name}", text


def scanned(material: ChainMaterial, stages: list[StageTask]) -> Iterator[str]:
    """What is found of a task with these stages, a line each."""
    first, trees = stages[0], material.trees
    bases = [stage.stage.base for stage in stages]
    references = [(stage.stage.base, stage.stage.landed) for stage in stages]
    laters = []
    for number in range(len(stages)):
        landed = [it for _, it in references[:number]]
        laters.append(later_lines(trees, [*bases[: number + 1], *landed], references[number:]))
    image = material.shared_image if len(stages) > 1 else ChainImage.of_one(material.image(first), 1)
    counts = [0, 0]
    for place, content in image_files(material.backend.client, image.name):
        archive = place.partition(":")[0]
        later = laters[image.archives.index(archive) if archive in image.archives else 0]
        counts[archive.startswith(ARCHIVES)] += 1
        if hits := finds(later, content):
            yield f"{place} has {hits} of {len(later)} later lines"
    shown = f", {counts[1]:,} of environments" if counts[1] else ""
    say(f"  image: {counts[0]:,} files and objects{shown}, {len(laters[0]):,} lines looked for")
    for number, stage in enumerate(stages[1:], 1):
        instruction = material.step(stage, first, name=str(number), instruction="", canary="none")
        script = material.with_setup(instruction, stage, "none").workdir[SCRIPT]
        for place, content in script_files(script):
            if hits := finds(laters[number], content):
                yield f"step {stage.position}, {place} has {hits} of {len(laters[number])} later lines"


@click.command(help=__doc__)
@click.option("--db", required=True, help="The database, with proved chains.")
@click.option("--chain", "only", multiple=True, default=("",), help="Of these chains, by the beginnings of their ids.")
def main(db: str, only: tuple[str, ...]) -> None:
    """See the module."""
    settings = Settings.load(db=db)
    found, tasks = 0, 0
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store.open(settings.db, create=False)))
        backend = stack.enter_context(BACKENDS["docker"].of(settings).connected())
        provider = stack.enter_context(closing(Provider(settings, store=store)))
        with store.reading() as tx:
            chains = [read_task(tx, name) for name in sorted(validations(tx)) if name.startswith(only)]
        for task in chains:
            material = ChainMaterial(task, settings.mirrors_dir, settings.data_dir, provider, backend)
            if task.chain.imported:
                continue
            for stages in [[it] for it in task.stages] + [list(task.stages)]:
                where = f"{task.chain.repository} {task.chain.id}, " + "+".join(str(it.position) for it in stages)
                try:
                    if len(stages) > 1:
                        material.shared_image  # noqa: B018  raises where there is none
                    say(where)
                    for words in scanned(material, stages):
                        found += 1
                        say(f"  {words}")
                    tasks += 1
                except PrchainError as error:
                    say(f"{where}: passed over, {error.name}: {error}")
    say(f"{tasks} tasks, {found} finds")
    sys.exit(1 if found or not tasks else 0)


if __name__ == "__main__":
    main()
