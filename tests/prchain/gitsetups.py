"""Ways in which git may be set up on a machine, a history under them, and all that is read of it."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from environments.checkouts.junk import IgnoreRules
from environments.images.tags import version_at
from miner.mine import MineOptions, Miner
from miner.repositories import parse_entry
from prchain.core.console.progress import SILENT
from prchain.core.git import GitRepository
from prchain.core.git.merge import merge3
from prchain.core.git.trees import TreeStore
from research.same_rows.__main__ import facts
from sql.tables import Base
from tests.chains.chainworld import NAME, Shop, build, chosen, function, module
from tests.databases import open_new
from tests.miner.gitworld import git, lines
from tests.prchain.treeworld import Content, plant


@dataclass(frozen=True)
class Setup:
    """A way in which git may be set up; ``{home}`` in a text is the user's folder."""

    user: str = ""
    """``~/.gitconfig``."""
    attributes: str = ""
    """``$XDG_CONFIG_HOME/git/attributes``, which is read without any setting."""
    system: str = ""
    """``$GIT_CONFIG_SYSTEM``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    own: str = ""
    """What the repository's own ``config`` says besides."""
    info: str = ""
    """The repository's own ``info/attributes``."""


_FILES = "[core]\n\tattributesFile = {home}/attributes\n\texcludesFile = {home}/excludes\n"
_NO_TEXT = "[core]\n\tbigFileThreshold = 1\n"
"""Files that are larger are binary to git."""

SETUPS = {
    "*.py -diff": Setup(attributes="*.py -diff\n"),
    "*.lock -diff": Setup(attributes="*.lock -diff\n"),
    "* binary": Setup(attributes="* binary\n"),
    "another diff of Python": Setup(
        "[diff]\n\texternal = false\n"
        '[diff "python"]\n\ttextconv = cat {home}/order\n\txfuncname = ^.*result\n\tbinary = true\n',
        "*.py diff=python\n",
    ),
    "files that core names": Setup(_FILES),
    "files that core names, of the system": Setup(system=f"{_FILES}[diff]\n\tnoprefix = true\n"),
    "another diff": Setup(
        "[diff]\n\talgorithm = patience\n\tindentHeuristic = false\n\trenames = false\n\trenameLimit = 1\n"
        "\torderFile = {home}/order\n\tinterHunkContext = 9\n\tcontext = 9\n\tignoreSubmodules = all\n"
        "\tnoprefix = true\n\tmnemonicPrefix = true\n[core]\n\tquotePath = false\n\tabbrev = 4\n"
    ),
    "another log, blame and grep": Setup(
        "[log]\n\tshowSignature = true\n\tfollow = true\n\tdiffMerges = combined\n[color]\n\tui = always\n"
        "[i18n]\n\tlogOutputEncoding = UTF-16\n\tcommitEncoding = latin1\n[format]\n\tpretty = %G?\n"
        "[blame]\n\tignoreRevsFile = {home}/none\n[grep]\n\tlineNumber = true\n\tcolumn = true\n"
    ),
    "attributes of other commands": Setup(attributes="* export-ignore merge=union text eol=crlf ident\n"),
    "another merge": Setup(
        "[merge]\n\tconflictStyle = zdiff3\n\tdirectoryRenames = true\n\trenames = false\n"
        '[merge "odd"]\n\tdriver = false\n',
        "* merge=odd\n",
    ),
    "no file is small": Setup(_NO_TEXT),
    "settings in variables": Setup(
        variables={
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.bigFileThreshold",
            "GIT_CONFIG_VALUE_0": "1",
            "GIT_CONFIG_PARAMETERS": "'core.bigFileThreshold'='1'",
            "GIT_DIFF_OPTS": "--unified=9",
            "GIT_EXTERNAL_DIFF": "false",
        },
    ),
    "another repository in variables": Setup(
        variables={
            **dict.fromkeys(("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"), "{home}"),
            **dict.fromkeys(("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"), "{home}"),
            "GIT_NAMESPACE": "other",
            "GIT_DEFAULT_HASH": "sha256",
            "GIT_ICASE_PATHSPECS": "1",
            "GIT_REPLACE_REF_BASE": "refs/heads",
            "GIT_ATTR_SOURCE": "main",
            "GIT_TRACE": "1",
            "LC_ALL": "de_DE.UTF-8",
            "LANGUAGE": "de",
        },
    ),
    "attributes of a clone": Setup(info="*.py -diff merge=odd export-ignore\n"),
    "settings of a clone": Setup(
        own=f"{_FILES}{_NO_TEXT}[blame]\n\tignoreRevsFile = nowhere\n[attr]\n\ttree = main\n[diff]\n\tnoprefix = true\n"
    ),
}


class Machine:
    """A user's folder, and a repository of three pull requests that build on each other."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.store = open_new(folder / "prchain.db")
        self.shop = Shop(folder)
        lock = lines("lock", count=40)
        first = module("prices", function("round_half_even_amount"))
        second = module("prices", function("round_half_even_amount", 5), function("refund_amount"))
        third = module("prices", function("round_half_even_amount", 5), function("refund_amount", 4), function("tip"))
        self.shop.land(1, {"src/till/prices.py": first, "till.lock": lock}, "Round amounts as banks do")
        moved: dict[str, Any] = {"src/till/prices.py": None, "src/till/\u00fcber prices.py": second}
        later_lock = lock.replace("line 9 ", "9 ")
        self.shop.land(2, {**moved, "till.lock": later_lock}, "Mend the rounding\n\nFollow-up to #1.")
        self.shop.land(3, {"src/till/\u00fcber prices.py": third}, "Refund tips\n\nFollow-up to #2.")
        self.shop.save()
        git(self.shop.path, "update-ref", "refs/tags/v1.2", self.shop.sha("main"))
        self._config = (self.shop.path / "config").read_text()
        self.trees = TreeStore.open(folder / "trees", [self.shop.path])
        versions = ("1\n2\n3\n", "1\nours\n3\n", "1\ntheirs\n3\n")
        files: list[dict[str | bytes, Content]] = [{".gitignore": "*.log\n", "a.py": text} for text in versions]
        self.made = [plant(self.trees, texts) for texts in files]

    @property
    def refs(self) -> dict[str, str]:
        """The branches, tags and pull heads of the repository."""
        words = git(self.shop.path, "for-each-ref", "--format=%(refname) %(objectname)").split()
        return dict(zip(words[::2], words[1::2], strict=True))

    def set_up(self, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set git up, for this user and this repository."""
        files = {
            self.home / ".gitconfig": setup.user,
            self.home / "xdg/git/attributes": setup.attributes,
            self.home / "xdg/git/ignore": "*.py\n",
            self.home / "system": setup.system,
            self.home / "attributes": "*.py -diff\n",
            self.home / "excludes": "*.md\n",
            self.home / "order": "*.md\n",
            self.shop.path / "info/attributes": setup.info,
            self.shop.path / "config": self._config + setup.own,
        }
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{home}", str(self.home)))
        folders = {"HOME": "{home}", "XDG_CONFIG_HOME": "{home}/xdg", "GIT_CONFIG_SYSTEM": "{home}/system"}
        monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
        for name, value in {**folders, **setup.variables}.items():
            monkeypatch.setenv(name, value.replace("{home}", str(self.home)))


def read(machine: Machine, folder: Path) -> dict[str, Any]:
    """What is read of the repository: rows of a database by natural key, patches, and what is made of trees."""
    found = _mined(machine, folder)
    repository, old, new = GitRepository.open(machine.shop.path), machine.shop.sha(1), machine.shop.sha("main")
    found["patches"] = [repository.patch_text(old, new, functions=on) for on in (False, True)]
    found["counts"] = list(repository.line_counts([(old, new)]))
    found["blame"] = repository.blame(new, b"till.lock")
    found["version"] = version_at(repository, new)
    return {**found, **_worked_on(machine.trees, *machine.made)}


def _mined(machine: Machine, folder: Path) -> dict[str, Any]:
    """Rows by table, and the chains' numbers. One database for all, emptied: SQL that is known need not be compiled."""
    store = machine.store
    with store.transaction() as tx:
        for table in reversed(Base.metadata.sorted_tables):
            tx.connection.execute(delete(table))
    spec = parse_entry(f"{NAME} = {machine.shop.path}", "github.com", folder)
    report = Miner(store, MineOptions(source="git"), mirrors=folder / "mirrors", progress=SILENT).mine(spec)
    assert report.error is None, report.error
    build(store, folder, strategy="evidence")
    with store.reading() as tx:
        rows: dict[str, Any] = {table.name: facts(tx, table, {}) for table in Base.metadata.sorted_tables}
    return {**rows, "numbers": sorted(chosen(store, "evidence").values())}


def _worked_on(trees: TreeStore, base: str, ours: str, theirs: str) -> dict[str, Any]:
    """What a merge, a patch, an archive and ignore rules of made trees are."""
    with trees.to_tar(ours) as output, tarfile.open(fileobj=output, mode="r|") as archive:
        archived = {member.name: (archive.extractfile(member) or output).read() for member in archive}
        output.read()
    with IgnoreRules(trees, base) as rules:
        ignored = [rules.hide(path) for path in (b"a.py", b"a.md", b"a.log")]
    merged = merge3(trees, base, ours, theirs)
    return {"merge": merged, "step": trees.patch_text(base, ours), "archive": archived, "ignored": ignored}
