"""Every git that we start has the variables and settings of one module, and no others."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from environments.checkouts.checkout import place_tree
from prchain.core.git import update_mirror
from prchain.core.git.environment import SETTINGS, local_environment, remote_environment
from prchain.core.git.standins import StandInRepository
from prchain.demo import library
from tests.environments.folder_sandbox import FolderSandbox
from tests.miner.gitworld import GITHUB
from tests.prchain.gitsetups import Machine, Setup, read

ROOT = Path(__file__).parents[2]
PACKAGES = ("prchain", "sql", "miner", "chains", "environments", "trajectories", "research")

_STARTS = "prchain/core/git/process.py"
_NO_START = {
    "miner/missing.py": "a command that people are told",
    "research/bench/git_bench.py": "the rival that is measured",
}


_MENTIONED = re.compile(r"""['"/]git['"]\s*,|\(\s*['"]git |\b(?:import|from) (?:[\w.]+, *)*(?:git|pygit2|dulwich)\b""")
_LIBRARIES = {"git", "pygit2", "dulwich"}


def starts_of_git(source: str) -> bool:
    """Whether a module makes a command of git, or imports a library that starts it."""
    return bool(_MENTIONED.search(source)) and any(map(_starts, ast.walk(ast.parse(source))))


def _starts(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.partition(".")[0] in _LIBRARIES for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0] in _LIBRARIES
        case (
            ast.List(elts=[ast.Constant(value=str(program)), second, *_])
            | ast.Tuple(elts=[ast.Constant(value=str(program)), second, *_])
        ):
            return program.rpartition("/")[2] == "git" and not _is_a_list_of_names(second)
        case ast.Call(func=ast.Attribute(attr="run" | "Popen" | "call" | "check_output" | "system"), args=[first, *_]):
            return isinstance(first, ast.Constant) and str(first.value).startswith("git ")
    return False


def _is_a_list_of_names(second: ast.expr) -> bool:
    """Whether what stands behind ``"git"`` is the next package or choice, and no word of a command."""
    names = {"python3", "procps", "github"}
    return isinstance(second, ast.Constant) and second.value in names


def test_git_is_started_in_one_place() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if starts_of_git(path.read_text(encoding="utf-8"))
    }
    assert found == {_STARTS, *_NO_START}


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.run(['git', 'diff'])",
        "subprocess.Popen(('git', *words))",
        "run(['/usr/bin/git', '-C', path])",
        "command = ['git', name]",
        "subprocess.run('git diff', shell=True)",
        "os.system('git gc')",
        "import git",
        "from git import Repo",
        "def f():\n    import git.repo\n",
    ],
)
def test_a_start_of_git_is_seen_however_it_is_written(source: str) -> None:
    assert starts_of_git(source)


@dataclass(frozen=True)
class Call:
    """One start of git."""

    verb: str
    settings: Mapping[str, str]
    variables: Mapping[str, str]

    @classmethod
    def of(cls, command: list[str], variables: Mapping[str, str]) -> Call:
        """One as a process is started."""
        words, settings = command[1:], {}
        while words[0] == "-c":
            name, _, settings[name] = words[1].partition("=")
            words = words[2:]
        return cls(words[0], settings, dict(variables))

    @property
    def gits(self) -> dict[str, str]:
        """Those variables that git alone reads."""
        return {name: value for name, value in self.variables.items() if name.startswith("GIT_")}


@contextmanager
def recorded(variables: Mapping[str, str]) -> Iterator[list[Call]]:
    """The gits that this process starts, by whichever function, under further variables of its own."""
    calls: list[Call] = []

    class Recording(subprocess.Popen[bytes]):
        def __init__(self, args: Any, *others: Any, **options: Any) -> None:
            if Path(args[0]).name == "git":
                calls.append(Call.of(list(args), os.environ if options.get("env") is None else options["env"]))
            super().__init__(args, *others, **options)

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(subprocess, "Popen", Recording)
        yield calls


NOWHERE = "/nowhere"
SHELL = {
    "GIT_DIR": NOWHERE,
    "GIT_WORK_TREE": NOWHERE,
    "GIT_OBJECT_DIRECTORY": NOWHERE,
    "GIT_INDEX_FILE": NOWHERE,
    "GIT_EXTERNAL_DIFF": "false",
    "GIT_DIFF_OPTS": "-u9",
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_VARIABLE_OF_NEXT_YEAR": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "diff.noprefix",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_SSH_COMMAND": "ssh -4",
    "LC_ALL": "C.UTF-8",
}
"""What a shell may have set."""

LOCAL = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "true",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
OF_A_CALL = {"GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_WORK_TREE"} | {
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
}
REMOTE = {"fetch", "ls-remote"}


def test_issue_38_every_git_of_a_stage_has_our_variables_and_settings(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.set_up(Setup(), monkeypatch)
    monkeypatch.setattr(library, "HISTORY", library.HISTORY[:3])
    with recorded(SHELL) as calls:
        read(machine, tmp_path)
        update_mirror(f"file://{machine.shop.path}", tmp_path / "mirror.git")
        StandInRepository.over(machine.trees, tmp_path / "stand-ins.git", ())
        with FolderSandbox(tmp_path / "sandbox") as sandbox:
            place_tree(sandbox, machine.trees, machine.made[0])
        library.build(tmp_path / "library")
    verbs = {call.verb for call in calls}
    assert verbs >= {"am", "archive", "blame", "cat-file", "check-ignore", "describe", "diff-tree", "for-each-ref"}
    assert verbs >= {"hash-object", "init", "log", "merge-tree", "pack-objects", "rev-list", "rev-parse", *REMOTE}
    for call in calls:
        told = f"{call.verb}: {sorted(call.gits)}"
        changed = {name for name, value in SETTINGS.items() if call.settings[name] != value}
        assert changed <= {"core.attributesFile", "core.excludesFile", "core.quotePath"}, told
        assert (call.variables["LC_ALL"], call.variables["LANGUAGE"]) == ("C", "C"), told
        assert not {NOWHERE, "Somebody", "-u9", "false"} & set(call.gits.values()), told
        assert "GIT_VARIABLE_OF_NEXT_YEAR" not in call.gits, told
        if call.verb in REMOTE:
            assert (call.gits["GIT_CONFIG_KEY_0"], call.gits["GIT_SSH_COMMAND"]) == ("diff.noprefix", "ssh -4")
        else:
            changed = {name for name, value in LOCAL.items() if call.gits.get(name) != value}
            replaced = {"GIT_NO_REPLACE_OBJECTS"} if call.gits.get("GIT_DIR", "").endswith("stand-ins.git") else set()
            assert changed <= {"GIT_LITERAL_PATHSPECS"} | replaced, told
            assert call.gits.keys() <= LOCAL.keys() | OF_A_CALL, told


def test_a_remote_is_asked_with_the_users_settings_and_a_token_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SHELL, "https_proxy": "http://proxy", "GIT_CONFIG_GLOBAL": "/mine"}.items():
        monkeypatch.setenv(name, value)
    found = remote_environment({"GIT_DIR": "/m.git"}, {"http.extraHeader": "secret"})
    assert (found["GIT_DIR"], found["https_proxy"], found["GIT_CONFIG_GLOBAL"]) == ("/m.git", "http://proxy", "/mine")
    assert [found[f"GIT_CONFIG_{name}"] for name in ("COUNT", "KEY_0", "KEY_1")] == [
        "2",
        "diff.noprefix",
        "http.extraHeader",
    ]
    assert found["GIT_CONFIG_VALUE_1"] == "secret"
    assert not found.keys() & {"GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF"}
    monkeypatch.setenv("GIT_CONFIG_COUNT", "odd")
    assert remote_environment({}, {"a.b": "c"})["GIT_CONFIG_COUNT"] == "1"
    assert local_environment({"GIT_NO_REPLACE_OBJECTS": None}).keys() & SHELL.keys() == {"LC_ALL"}


@pytest.mark.parametrize(
    ("user", "variables"),
    [
        ("[init]\n\tdefaultBranch = odd\n[core]\n\tsharedRepository = 0777\n\tlogAllRefUpdates = always\n", {}),
        ("[submodule]\n\trecurse = true\n[fetch]\n\trecurseSubmodules = true\n\tprune = false\n\tall = true\n", {}),
        ("[core]\n\tbigFileThreshold = 1\n[transfer]\n\tfsckObjects = true\n[fetch]\n\tunpackLimit = 1\n", {}),
        ("[extensions]\n\tworktreeConfig = true\n[tag]\n\tgpgSign = true\n[remote]\n\tpushDefault = x\n", {}),
        ('[url "file://"]\n\tinsteadOf = odd:\n[http]\n\tproxy = http://127.0.0.1:1\n', {}),
        (
            "",
            {
                "GIT_DEFAULT_HASH": "sha256",
                "GIT_NAMESPACE": "x",
                "GIT_TEMPLATE_DIR": "/tmp",
                "GIT_QUARANTINE_PATH": "/",
            },
        ),
    ],
)
def test_a_mirror_is_the_same_whatever_a_user_has_set(
    user: str, variables: Mapping[str, str], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.shop.path / "HEAD").write_text(f"{machine.shop.sha('main')}\n")  # the remote names no branch
    machine.set_up(Setup(user, variables=variables), monkeypatch)
    mirror = update_mirror(f"file://{machine.shop.path}", tmp_path / "mirror.git", refs=[GITHUB.pull_heads])
    assert (mirror.refs("refs"), mirror.object_format) == (machine.refs, "sha1")
    assert (mirror.path / "HEAD").read_text() == "ref: refs/heads/main\n"


def test_an_address_is_replaced_as_the_user_has_set(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.set_up(Setup(f'[url "file://{machine.shop.path}"]\n\tinsteadOf = https://example.org/r.git\n'), monkeypatch)
    mirror = update_mirror("https://example.org/r.git", tmp_path / "mirror.git", refs=[GITHUB.pull_heads])
    assert mirror.refs("refs") == machine.refs


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("machine"))
    yield made
    made.store.close()
