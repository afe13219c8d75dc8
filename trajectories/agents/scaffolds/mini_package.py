"""mini-swe-agent as it is installed: its agent, what reads and answers calls of its tool, and its prompts.

A plain import makes a folder in the user's home, reads a file of variables (keys among them) into the environment of
this process, and prints a banner. The import here does none of this. Its module of models is not imported: it needs
litellm, which asks the network for prices; mini-swe-agent asks our gateway instead.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from prchain.core.errors import UsageError
from prchain.core.llm.prompts import Prompt

if TYPE_CHECKING:
    from jinja2 import Template

SHOWN_CHARS = 10_000
"""Characters of an output that its observation template shows: the number is written in the template."""

_PROMPTS_FILE = "mini.yaml"
"""The file with system message, task and fault message: the configuration of its own command, whose agent submits with
one command. In that of its SWE-bench runs the agent leaves a patch file in the repository, and must not touch tests,
which our queries may ask for."""

_OBSERVATIONS_FILE = "benchmarks/swebench.yaml"
"""The file with the form of observations: that of its SWE-bench runs, which our own scaffold writes, too."""

_MAJOR = "2."
"""The supported versions; agent, model and environment had other interfaces in version 1."""


@dataclass(frozen=True, slots=True)
class MiniPackage:
    """The parts of mini-swe-agent that we use; its own names are in brackets."""

    version: str
    agent: Any
    """The class of its agent [`DefaultAgent`]."""
    format_error: type[Exception]
    """Raised for a reply without a valid tool call; ``messages[0]["content"]`` is the text for the model."""
    parse: Any
    """From calls to actions [`parse_toolcall_actions`]."""
    tool: Mapping[str, Any]
    system: str
    """Template of the system message."""
    task: str
    """Template of the first user's message."""
    fault: str
    """Template of the message about a faulty reply."""
    observation: str
    """Template of an observation."""
    environment: Mapping[str, str]
    """Variables of every command."""

    @property
    def prompt(self) -> Prompt:
        """Its prompts as the ledger names them, with version and hash."""
        texts = "\0".join((self.system, self.task, self.fault, self.observation))
        digest = hashlib.sha256(texts.encode()).hexdigest()
        return Prompt(f"mini-swe-agent-{self.version}", digest[:16], _template(self.system))

    def render(self, template: Literal["system", "task", "fault", "observation"], variables: Mapping[str, Any]) -> str:
        """One of the templates, filled in as mini-swe-agent does it."""
        return _template(getattr(self, template)).render(**variables)


@functools.cache
def _template(source: str) -> Template:
    """Compiled once: mini-swe-agent compiles for each observation, which takes longer than the rest of its step."""
    from jinja2 import StrictUndefined, Template  # noqa: PLC0415  loaded with the package

    template: Template = Template(source, undefined=StrictUndefined)
    return template


@functools.cache
def load_package() -> MiniPackage:
    """mini-swe-agent. Raises `UsageError` where it is not installed, or its version is not supported."""
    try:
        with _quietly():
            package = importlib.import_module("minisweagent")
            agents = importlib.import_module("minisweagent.agents.default")
            calls = importlib.import_module("minisweagent.models.utils.actions_toolcall")
            exceptions = importlib.import_module("minisweagent.exceptions")
            yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise UsageError(
            f"the scaffold mini needs mini-swe-agent ({error}); run make mini, or pip install 'prchain[mini]'"
        ) from None
    if not package.__version__.startswith(_MAJOR):
        raise UsageError(f"the scaffold mini needs mini-swe-agent {_MAJOR}x; this is {package.__version__}")
    # Not by its own function, which takes a file of that name in the current folder first.
    folder = Path(package.package_dir) / "config"
    own, runs = (
        yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in (_PROMPTS_FILE, _OBSERVATIONS_FILE)
    )
    return MiniPackage(
        version=package.__version__,
        agent=agents.DefaultAgent,
        format_error=exceptions.FormatError,
        parse=calls.parse_toolcall_actions,
        tool=calls.BASH_TOOL,
        system=own["agent"]["system_template"],
        task=own["agent"]["instance_template"],
        fault=own["model"]["format_error_template"],
        observation=runs["model"]["observation_template"],
        environment=own["environment"]["env"],
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """During the import its folder is an empty temporary one, and its banner is off."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"MSWEA_GLOBAL_CONFIG_DIR": folder, "MSWEA_SILENT_STARTUP": "1"}
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
