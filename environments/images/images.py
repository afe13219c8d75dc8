"""Images of repositories' dependencies: built once for all trees whose manifests agree, listed, removed.

An image holds what the manifests ask for and nothing of the tree itself: it also serves stages before the one it was
built from, and these must not find later code, or a later readme in installed metadata. A stage puts its tree in place
and runs the recipe's refresh, offline; a build ends by doing the same, so an image that exists works.
"""

from __future__ import annotations

import json
import logging
import secrets
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from environments.images.building import USER, BuildContainer
from environments.images.buildlogs import cure, is_away, refusal
from environments.images.buildtree import BuildTree
from environments.images.dated_indexes import exceptions, uv_configuration
from environments.images.image_plan import BUILD, ImagePlan
from environments.images.image_settings import BuildSettings
from environments.sandboxes.engine import BASE_LABEL, IMAGE_LABEL, LAYER_LABEL, disk_usage, engine_failures, pull
from environments.sandboxes.kept_places import drop_places
from environments.sandboxes.leftovers import SNAPSHOT
from environments.sandboxes.sandbox import WORKDIR
from prchain.core.errors import BuildFailed, DiskFull, ImageError, ImageMissing, IndexUnreachable
from prchain.core.timestamps import stamp

log = logging.getLogger(__name__)

BASE_PACKAGES = (
    "git",
    "procps",
    "patch",
    "ca-certificates",
    "python3",
    "python3-venv",
    "python3-dev",
    "build-essential",
)
"""Debian's packages that every image has."""

_MOST_OF_ALL, _MOST_OF_ONE = 400_000_000, 100_000_000
"""Bytes to fetch for all that a tree wishes for; where it is more, each package comes alone, if it is not too large."""

PREPARE = f"""
id -u {USER} > /dev/null 2>&1 || useradd --create-home --uid 1000 --shell /bin/bash {USER} 2> /dev/null \
    || useradd --create-home --shell /bin/bash {USER}
install -d -o {USER} -g {USER} {WORKDIR} /opt/env
chown {USER}: {BUILD}
lacking() {{
    local package state
    for package in "$@"; do
        state=$(dpkg-query -W -f '${{Status}}' "${{package%%=*}}" 2> /dev/null || true)
        case "$state" in *"ok installed") ;; *) echo "$package" ;; esac
    done
}}
missing=$(lacking $PACKAGES)
wished=$(lacking ${{WISHED_PACKAGES:-}})
if [ -n "$missing$wished" ]; then
    mkdir -p /usr/share/man/man1  # slim images lack it, and Debian's Java does not install without
    export DEBIAN_FRONTEND=noninteractive
    if [ -e {BUILD}/apt.conf ]; then export APT_CONFIG={BUILD}/apt.conf; fi
    install="apt-get install -q -y --no-install-recommends"
    apt-get update -q
    if [ -n "$missing" ]; then $install $missing; fi
    # To apt what is no name is a pattern.
    is_there() {{ apt-cache show "$1" 2> /dev/null | grep -Fx "Package: $1" > /dev/null; }}
    there=
    for package in $wished; do
        if is_there "$package"; then there="$there $package"; fi
    done
    to_fetch() {{ $install --print-uris "$@" 2> /dev/null | awk '{{ sum += $3 }} END {{ printf "%.0f", sum }}'; }}
    heavier() {{ [ "$(to_fetch "${{@:2}}")" -gt "$1" ]; }}
    if [ -n "$there" ] && {{ heavier {_MOST_OF_ALL} $there || ! $install $there; }}; then
        for package in $there; do
            if ! heavier {_MOST_OF_ONE} "$package"; then
                if $install "$package"; then continue; fi
                apt-get purge -q -y "$package" || true  # half of it would fail whatever comes after
            fi
            echo "without:debian:$package" >> {BUILD}/notes
            chown {USER}: {BUILD}/notes
        done
    fi
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
fi
"""

"""Makes the user, the folders, Debian's packages of ``$PACKAGES`` that lack, and of ``$WISHED_PACKAGES`` those that can
be had."""

_TIDY = f"""
while read -r from to; do
    [ -n "$from" ] || continue
    if [ -e "$from" ]; then rm -rf "$to"; mv -- "$from" "$to"; fi
done <<< "$KEEP"
find {WORKDIR} -mindepth 1 -delete
rm -rf {BUILD} /tmp/* /tmp/.[!.]* /var/tmp/* /home/{USER}/.cache /home/{USER}/.npm /root/.cache /root/.npm
"""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that exists. `notes` say which of the manifests' requirements it lacks, and why."""

    name: str
    id: str
    repository: str
    recipe: str
    size_bytes: int
    """With the layers of its base."""
    created: str
    """ISO 8601, UTC."""
    as_of: str | None
    """The date as of which dependencies were resolved; None: the newest ones that the index had."""
    notes: tuple[str, ...] = ()
    cached: bool = False
    """Whether it was there already."""
    seconds: float = 0.0
    """What the build took, its proof included."""
    own_bytes: int | None = None
    """What it takes beyond other images; known to `list_images` only."""
    way: str = ""
    """How it was made (`ImagePlan.way`)."""


def find_image(engine: Any, name: str) -> Image | None:
    """The image of that name, if the engine has it and it is ours."""
    try:
        with engine_failures():
            image = engine.images.get(name)
    except ImageMissing:
        return None
    return _image(image.attrs, name) if (image.attrs["Config"].get("Labels") or {}).get(IMAGE_LABEL) else None


def find_tagged(engine: Any, name: str) -> str | None:
    """The id of an image of the engine, whoever made it; None where there is none of that name."""
    try:
        with engine_failures():
            return str(engine.images.get(name).id)
    except ImageMissing:
        return None


def build_image(
    engine: Any,
    plan: ImagePlan,
    tree: BuildTree,
    settings: BuildSettings,
    *,
    as_of: datetime | None = None,
    rebuild: bool = False,
) -> Image:
    """The image of a plan; built from `tree` where the engine does not have it, or where `rebuild` asks for it.

    `as_of` is the date as of which dependencies are resolved, where the index tells upload times. An image that is
    there serves whatever its date. Raises `BuildFailed`, and keeps an image that exists; `IndexUnreachable` where no
    build could go on; `ImageError`, `ImageMissing` for a base image that cannot be pulled, `EngineDiskFull`,
    `EngineUnavailable`.
    """
    if not rebuild and (found := find_image(engine, plan.image)):
        return replace(found, cached=True)
    start = time.monotonic()
    log.info("building the image %s", plan.image)
    try:
        _build(engine, plan, tree, settings, as_of, start + settings.timeout)
    except BuildFailed as failure:
        failure.seconds = time.monotonic() - start
        log.warning("building %s failed at %s after %.0f s", plan.image, failure.step, failure.seconds)
        raise
    found = find_image(engine, plan.image)
    if found is None:
        raise ImageError(f"the image {plan.image} was removed by somebody else")
    log.info("built %s in %.0f s", plan.image, time.monotonic() - start)
    return replace(found, seconds=time.monotonic() - start)


def _build(
    engine: Any, plan: ImagePlan, tree: BuildTree, settings: BuildSettings, as_of: datetime | None, deadline: float
) -> None:
    base = ensure_base_image(engine, settings.base_image)
    date = stamp(as_of) if as_of else ""
    packages = " ".join(dict.fromkeys([*BASE_PACKAGES, *plan.packages]))
    variables = {
        "AS_OF": date,
        "PACKAGES": packages,
        "WISHED_PACKAGES": " ".join(plan.wished_packages),
        **_environment(plan.recipe.environment, base),
        **settings.variables,
        **plan.variables,
        **plan.environment,
    }
    container = BuildContainer(
        engine,
        settings.base_image,
        network=settings.network,
        deadline=deadline,
        files={**plan.files, **settings.files, **_dated(as_of)},
        variables=variables,
        secrets=settings.secrets,
    )
    with container:
        container.run("prepare", PREPARE, root=True)
        container.put_tree(tree, plan.tag)
        notes = []
        for step in plan.recipe.build:
            try:
                index, why = container.try_each(step.name, step.run, root=step.root)
            except BuildFailed as failure:
                if step.asks_index or is_away(failure.lines):
                    raise _unreachable(failure) from None
                raise
            if index:
                which = step.tries[index] if index < len(step.tries) else f"try {index + 1} of {len(step.run)}"
                notes.append("; ".join(filter(None, (f"{step.name}: {which}", " | ".join(why)[:600]))))
        dated, said = read_notes(container.read(f"{BUILD}/notes"), date, plan.variables.get("ERA", ""))
        notes += said
        if plan.python is not None and (plan.python.against or not plan.default_python):
            against = f", against {', '.join(plan.python.against)}" if plan.python.against else ""
            notes.insert(0, f"python {plan.python.text}, by {plan.python.by}{against}")
        notes[:0] = plan.chosen
        if dated and plan.node is None and as_of is not None and (taken_later := exceptions(as_of, installs=False)):
            notes.append(f"taken as of a later day: {', '.join(taken_later)}")
        if plan.added:
            notes.append(f"wished for, as the landing adds them: {', '.join(plan.added)}")
        keep = "\n".join(f"{source} {target}" for source, target in plan.recipe.keep.items())
        container.run("tidy", f"KEEP={shlex.quote(keep)}\n{_TIDY}", root=True)
        label = {
            "repository": plan.repository,
            "recipe": plan.recipe.name,
            "as_of": dated,
            "notes": notes,
            "way": plan.way,
        }
        # Only a checked image gets the name: others look for it meanwhile, and a crash leaves no half of one.
        draft = f"{plan.image}-{secrets.token_hex(4)}"
        container.commit(draft, _changes(plan, base, label))
    try:
        _prove(engine, replace(plan, image=draft), tree, deadline)
        with engine_failures():
            engine.images.get(draft).tag(*plan.image.rsplit(":", 1))
    finally:
        remove_image(engine, draft)


def _unreachable(failure: BuildFailed) -> IndexUnreachable:
    said = refusal(failure.lines) or f"the step {failure.step} failed"
    known = cure(failure.lines) or "set environments_index_url to one that can be reached"
    return IndexUnreachable(f"the index of packages cannot be asked: {said} ({known})", log=failure.log)


def read_notes(text: str, date: str, era: str) -> tuple[str | None, list[str]]:
    """What a recipe's steps wrote of themselves, a word each: the date as of which packages were taken, None for the
    newest, and the notes for people. `date` is the build's own, `era` the first day of the interpreter's.

    Code of the tree runs in these steps, so that no date is taken from what is written.
    """
    words = text.split()
    took_era = bool(era) and f"as_of:{era}" in words
    dated = era if took_era else date if "dated" in words else None
    notes = [word for word in dict.fromkeys(words) if word not in {"dated", f"as_of:{era}"}]
    if "undated" in notes:
        notes[notes.index("undated")] = "the newest packages: the registry does not tell when releases came out"
    if took_era:
        notes.append(f"packages as of {era[:10]}, the first day on which they know the interpreter")
    return dated, notes


def _dated(as_of: datetime | None) -> dict[str, bytes]:
    """What uv is told of an index as of a day."""
    if as_of is None:
        return {}
    names = {"uv.toml": True, "uv-builds.toml": False}
    return {name: uv_configuration(as_of, installs=installs) for name, installs in names.items()}


def ensure_base_image(engine: Any, name: str) -> Mapping[str, str]:
    """The variables of the base image, which is pulled where the engine lacks it. Raises `ImageMissing`."""
    try:
        with engine_failures():
            image = engine.images.get(name)
    except ImageMissing:
        try:
            image = pull(engine, name)
        except DiskFull:
            raise
        except ImageError as error:
            raise ImageMissing(
                f"the base image {name} is not there and cannot be pulled ({error}); where no registry can be reached, "
                "make one with `prchain environments base` and set environments_base_image to its name, or do without "
                "Docker: --backend local"
            ) from None
    return dict(entry.partition("=")[::2] for entry in image.attrs["Config"].get("Env") or [])


def list_images(engine: Any) -> list[Image]:
    """The images that prchain built, for whichever database, newest first, each with its size beyond the layers
    that it shares."""
    return list_labelled(engine, IMAGE_LABEL)


def list_labelled(engine: Any, label: str) -> list[Image]:
    """As `list_images`, of images with a label of ours; images of repositories inherit those of their layers."""
    found = []
    for item in disk_usage(engine)["Images"] or []:
        labels = item.get("Labels") or {}
        if label != IMAGE_LABEL and labels.get(IMAGE_LABEL):
            continue
        # A sandbox's snapshot inherits the labels of its image.
        if labels.get(label) and not labels.get(SNAPSHOT):
            for name in item.get("RepoTags") or ["<none>"]:
                own = item["Size"] - max(item.get("SharedSize", 0), 0)
                found.append(replace(_image(item, name), own_bytes=own))
    return sorted(found, key=lambda image: (image.created, image.name), reverse=True)


def prune_images(
    engine: Any,
    *,
    keep: Collection[str] = (),
    only: Collection[str] | None = None,
    repository: str | None = None,
    before: datetime | None = None,
) -> list[Image]:
    """Remove the images that prchain built, except those in `keep`; of one repository, or made before a time, if given.

    `only` are the names that may be removed; None: every one, whoever's database it was built for. Returns what was
    removed. One that a container stands on stays.
    """
    chosen = [
        image
        for image in list_images(engine)
        if (only is None or image.name in only)
        and image.name not in keep
        and (repository is None or image.repository.lower() == repository.lower())
    ]
    return remove_listed(engine, chosen, before)


def remove_listed(engine: Any, images: Sequence[Image], before: datetime | None = None) -> list[Image]:
    """Remove images, of those made before a time if one is given; returns what was removed. One that a container stands
    on stays."""
    removed = []
    for image in images:
        if before is not None and datetime.fromisoformat(image.created) >= before:
            continue
        try:
            drop_places(engine, image.id)
            with engine_failures():
                engine.images.remove(image.id if image.name == "<none>" else image.name)
        except (ImageError, ImageMissing):
            continue
        removed.append(image)
    return removed


def remove_image(engine: Any, name: str) -> None:
    """Remove an image of ours; it need not be there."""
    try:
        with engine_failures():
            found = str(engine.images.get(name).id)
        drop_places(engine, found)
        with engine_failures():
            engine.images.remove(name, force=True)
    except ImageMissing:
        return


def _prove(engine: Any, plan: ImagePlan, tree: BuildTree, deadline: float) -> None:
    """Do offline what every stage does first, and the recipe's checks. Raises `BuildFailed`."""
    with BuildContainer(engine, plan.image, network="none", deadline=deadline, variables=plan.environment) as container:
        put_in_place(container, plan, tree)


def put_in_place(container: BuildContainer, plan: ImagePlan, tree: BuildTree) -> None:
    """Put a tree into a container of an image, as every stage does first, and run the recipe's checks. Raises
    `BuildFailed`."""
    container.put_tree(tree, plan.tag)
    for script in plan.recipe.refresh:
        container.run("refresh", script)
    for script in plan.recipe.check:
        container.run("check", script)


def _environment(variables: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    path = base.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    return {name: value.replace("$PATH", path) for name, value in variables.items()}


def _changes(plan: ImagePlan, base: Mapping[str, str], label: Mapping[str, Any]) -> list[str]:
    variables = _environment({**plan.recipe.environment, **plan.recipe.offline}, base)
    # JSON quotes as a Dockerfile does, but for $.
    lines = [f"ENV {name}={quoted(value)}" for name, value in variables.items()]
    return [
        *lines,
        f"USER {USER}",
        f"WORKDIR {WORKDIR}",
        'CMD ["/bin/bash"]',
        f"LABEL {IMAGE_LABEL}={quoted(json.dumps(label))}",
        f'LABEL {BASE_LABEL}=""',
    ]


def quoted(value: str) -> str:
    """A text as a value in a line of a Dockerfile."""
    kept = "".join(char if char.isprintable() else " " for char in value)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def _image(attributes: Mapping[str, Any], name: str) -> Image:
    """From the engine's description of an image, as `inspect` or `df` gives it."""
    labels = attributes.get("Labels") or (attributes.get("Config") or {}).get("Labels") or {}
    try:
        details = json.loads(labels.get(IMAGE_LABEL) or "{}")
    except ValueError:
        details = {}
    details = details if isinstance(details, dict) else {}
    created = attributes["Created"]
    when = (
        datetime.fromtimestamp(created, UTC)
        if isinstance(created, int)
        else datetime.fromisoformat(created[:19] + "+00:00")
    )
    return Image(
        name=name,
        id=attributes["Id"],
        repository=str(details.get("repository", "")),
        recipe=str(details.get("recipe", labels.get(LAYER_LABEL, ""))),
        size_bytes=int(attributes["Size"]),
        created=when.isoformat(),
        as_of=details.get("as_of"),
        notes=tuple(map(str, details.get("notes", ()))),
        way=str(details.get("way", "")),
    )
