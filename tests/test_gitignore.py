"""What the commands of README and docs leave in a checkout is no part of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_files_that_the_docs_exports_write_are_ignored(tmp_path: Path) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))]
    names = set(re.findall(r"--out ([\w]+\.\w+)", "\n".join(pages)))
    assert {"tasks.jsonl", "sft.jsonl"} <= names
    outputs = sorted({*names, *(f"{name}.card.{kind}" for name in names for kind in ("md", "json"))})
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    ignored = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", *outputs, "tests/kept.jsonl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(ignored.stdout.split()) == outputs
