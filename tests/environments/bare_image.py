"""An image with bash and coreutils, and neither Python nor Node nor anything else that could serve."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import SandboxConfig

_PROGRAMS = ("bash", "cat", "mkdir", "head", "sleep", "chmod", "ls", "env", "tar")
_NAME = f"prchain-test-bare-{os.getpid()}"


@contextmanager
def bare_image(client: Any, base: str, more: Sequence[str] = ()) -> Iterator[str]:
    """The name of such an image, made of programs (and `more`) and libraries of `base`; removed at the end."""
    programs = " ".join((*_PROGRAMS, *more))
    wanted = f"p=$(command -v {programs}); tar -chf - $p $(ldd $p | grep -o '/lib[^ ]*' | sort -u) 2>/dev/null"
    with DockerSandbox(SandboxConfig(base, "/"), client=client) as box:
        made = box.exec(wanted, output_limit=64 << 20)
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(made.output)) as source, tarfile.open(fileobj=out, mode="w") as target:
        for folder in ("bin", "usr", "usr/bin", "lib64", "lib", "tmp", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            target.addfile(entry)
        for member in source:
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
            if member.name.endswith("/bin/bash"):
                link = tarfile.TarInfo("bin/bash")
                link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/bash"
                target.addfile(link)
    client.api.import_image_from_data(out.getvalue(), repository=_NAME, tag="1", changes=["ENV PATH=/usr/bin:/bin"])
    try:
        yield f"{_NAME}:1"
    finally:
        client.api.remove_image(f"{_NAME}:1", force=True)
