"""The image of an exported task: that of a stage's checkout, with what packs an agent's work.

It holds S_1 = B_t of its first stage as a repository of one commit, and nothing that came later.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, Self

from environments.images.manifests import image_name
from environments.proofs.stage_images import stage_image
from environments.sandboxes.engine import LABEL, engine_failures
from environments.stages import ChainStages, Stage
from environments.workplace import Workplace
from prchain.core.errors import ImageError, ImageMissing, UsageError
from trajectories.export.tasks.harbor.bundle import PYTHON
from trajectories.export.tasks.harbor.inside.said import texts_of, with_tuples

TASK_LABEL = f"{LABEL}.harbor"
"""On images of tasks: the facts, with a hash of all that the image was made from."""

PLACE = "/opt/prchain"
ARCHIVE = "/logs/artifacts/prchain-work.tar"
"""Below the folder that Harbor always takes along to a verifier of its own (harbor 0.26, `with_convention_entry`)."""

_ROOT = "0"
_PYTHON = "/usr/bin/python3"
_GIT = "/usr/bin/git"
_SYSTEM = ("/usr/", "/bin", "/sbin")
_VERSIONS = f"{_PYTHON} -c 'import sys; print(*sys.version_info[:2])' && {_GIT} version"
_OUTPUTS = (
    "cd {0} && [ ! -e .git/info/exclude ] || {1} -C {0} -c safe.directory='*' ls-files --others --ignored "
    "--exclude-from=.git/info/exclude --directory -z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What a grader has to know of the image."""

    inputs: str
    user: str
    """The agent's."""
    environment: Mapping[str, str]
    outputs: tuple[str, ...]
    watched: tuple[str, ...]
    fingerprint: Mapping[str, str]
    git: tuple[int, int]
    """The version of the image's git."""

    @classmethod
    def of_label(cls, text: str) -> Self:
        """The facts of a label."""
        return cls(**with_tuples(json.loads(text)))


@dataclass(frozen=True, slots=True)
class TaskImage:
    """An image by its name, with its facts."""

    name: str
    facts: ImageFacts


def task_image(workplace: Workplace, chain: ChainStages, stage: Stage, *, as_root: bool = False) -> TaskImage:
    """The image of tasks that begin with a stage, made where the engine has none of the same inputs; with `as_root` its
    user is root, and the agent's is told in its facts.

    `workplace` is the stage's, in docker, and connected. Raises `UsageError` for an image whose Python or git is too
    old for what has to run in it, and as `environments.proofs.stage_images.stage_image`.
    """
    client = workplace.backend.client
    base = stage_image(workplace, chain, stage)
    listing = _listing(workplace, stage)
    scripts = {it: script_of(it) for it in ("collect.py",)}
    with engine_failures():
        image = client.images.get(base)
    whole = hashlib.sha256(f"{image.id}\n".encode() + listing)
    config = image.attrs["Config"]
    environment = dict(it.split("=", 1) for it in config.get("Env") or () if "=" in it)
    watched = _watched(environment)
    for part in (*scripts.values(), script_of("fingerprint.py"), repr(watched).encode()):
        whole.update(part)
    if as_root:
        whole.update(b"as root")
    name = task_image_name(chain.repository, chain.id, stage.position, whole.hexdigest())
    known = _label(client, name)
    if known is not None and known.inputs == whole.hexdigest():
        return TaskImage(name, known)
    with container_of(client, base) as container:
        ours = packed_files(PLACE, {**scripts, "listing": listing, "fingerprint.py": script_of("fingerprint.py")})
        with engine_failures():
            container.put_archive("/", ours)
        git = _checked_versions(container, base)
        workdir = workplace.provided.plan.workdir
        facts = ImageFacts(
            inputs=whole.hexdigest(),
            user=config.get("User") or _ROOT,
            environment={**environment, **workplace.provided.plan.environment},
            outputs=output_texts(_said(container, _OUTPUTS.format(workdir, _GIT))),
            watched=watched,
            fingerprint=json.loads(_said(container, f"{_PYTHON} -I -S {PLACE}/fingerprint.py {' '.join(watched)}")),
            git=git,
        )
        _said(container, f"rm {PLACE}/fingerprint.py")
        commit(container, name, TASK_LABEL, asdict(facts), _ROOT if as_root else config.get("User") or "")
    return TaskImage(name, facts)


def commit(container: Any, name: str, label: str, facts: Mapping[str, Any], user: str) -> None:
    """Make a container's files an image of tasks, which tells facts. Raises `ImageError`, `EngineUnavailable`."""
    repository, _, tag = name.rpartition(":")
    with engine_failures():
        container.commit(
            repository=repository,
            tag=tag,
            changes=[f"LABEL {label}={json.dumps(json.dumps(facts))}".replace("$", "\\$")],
            conf={"Entrypoint": [], "Cmd": ["/bin/bash"], "User": user},
        )


def task_image_name(repository: str, chain_id: str, position: int, inputs: str) -> str:
    """With a prefix of the inputs' hash: a later export changes nothing of what earlier folders name."""
    return image_name(repository, f"harbor-{chain_id}-{position}-{inputs[:12]}")


def output_texts(said: str) -> tuple[str, ...]:
    """The paths that git said, with a NUL behind each, as texts that a file of UTF-8 holds."""
    return texts_of(said.encode("utf-8", "surrogateescape").split(b"\0")[:-1])


def _listing(workplace: Workplace, stage: Stage) -> bytes:
    entries = workplace.trees.entries(workplace.trees.tree_of(stage.base))
    return b"".join(b"%s %s %s\0" % (it.mode.encode(), it.blob.encode(), path) for path, it in entries.items())


def script_of(name: str) -> bytes:
    """A file of what runs in containers."""
    return (resources.files(__package__) / "inside" / name).read_bytes()


def _watched(environment: Mapping[str, str]) -> tuple[str, ...]:
    """A virtual environment, and the folders of programs that are not the system's: those an engine adds to, and who
    is not root cannot write there."""
    folders = [it for it in environment.get("PATH", "").split(":") if not it.startswith(_SYSTEM)]
    found = [it for it in (*folders, environment.get("VIRTUAL_ENV", "")) if re.fullmatch(r"/[\w./-]+", it)]
    return tuple(sorted(it for it in dict.fromkeys(found) if not any(it.startswith(f"{up}/") for up in found)))


@contextmanager
def container_of(
    client: Any, image: str, command: Sequence[str] = ("sleep", "infinity"), *, start: bool = True
) -> Iterator[Any]:
    """A container of an image without a network, with root as its user; it is removed in the end."""
    with engine_failures():
        container = client.containers.create(image, list(command), user="0", network_disabled=True)
    try:
        if start:
            with engine_failures():
                container.start()
        yield container
    finally:
        with engine_failures():
            container.remove(force=True)


def packed_files(folder: str, files: Mapping[str, bytes], folders: Collection[str] = ()) -> bytes:
    """A folder with files, and with folders that root alone reads, as a tar to be unpacked at the root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("", *folders):
            header = tarfile.TarInfo(f"{folder.strip('/')}/{name}".rstrip("/"))
            header.type, header.mode = tarfile.DIRTYPE, 0o700 if name else 0o755
            archive.addfile(header)
        for name, content in sorted(files.items()):
            header = tarfile.TarInfo(f"{folder.strip('/')}/{name}")
            header.size, header.mode = len(content), 0o644
            archive.addfile(header, io.BytesIO(content))
    return out.getvalue()


def _said(container: Any, command: str) -> str:
    with engine_failures():
        code, (output, errors) = container.exec_run(["/bin/sh", "-c", command], user="0", demux=True)
    if code != 0:
        words = (errors or b"").decode("utf-8", "replace").strip()[-200:]
        raise ImageError(f"the image does not do what a task needs: exit code {code}: {words}")
    return (output or b"").decode("utf-8", "surrogateescape")


def _checked_versions(container: Any, image: str) -> tuple[int, int]:
    """The version of git. Raises `UsageError` where a grader cannot run."""
    try:
        lines = _said(container, _VERSIONS).splitlines()
    except ImageError:
        raise UsageError(f"{image} has no {_PYTHON} or no {_GIT}, which a grader needs") from None
    major, minor = map(int, lines[0].split())
    if (major, minor) < PYTHON:
        wanted = ".".join(map(str, PYTHON))
        raise UsageError(f"{_PYTHON} of {image} is {major}.{minor}, and a grader needs {wanted} or newer")
    found = re.search(r"(\d+)\.(\d+)", lines[1])
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _label(client: Any, name: str) -> ImageFacts | None:
    try:
        text = label_of(client, name, TASK_LABEL)
        return ImageFacts.of_label(text) if text else None
    except (ValueError, TypeError):
        return None


def label_of(client: Any, name: str, label: str) -> str | None:
    """The text of an image's label; None without the label, or the image."""
    try:
        with engine_failures():
            return (client.images.get(name).labels or {}).get(label)
    except ImageMissing:
        return None
