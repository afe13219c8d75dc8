"""Which lines of the reference that an agent's own work lacks entered a state.

Such a line is in M_{t-1} and not in A_{t-1}, S_t gained it over A_{t-1}, and upstream did not add it between M_{t-1}
and B_t. Lines are counted in two ways, and only what both find is a leak:

- by how often a path has them, which does not depend on the alignment of texts, but does not show that upstream moved
  a line;
- by the added lines of `git diff`, with renames followed, which shows that.

Lines that only the first finds are lines that upstream itself wrote again, at another place, after the reference had
landed: they come with upstream's later work, as all of it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from prchain.core.git import parse_patch
from prchain.core.git.trees import EXECUTABLE, FILE, TreeChange, TreeStore

Lines = Counter[str]


def leaks(store: TreeStore, trees: tuple[str, str, str, str], tests: Collection[bytes]) -> tuple[Lines, Lines]:
    """Of (M_{t-1}, A_{t-1}, B_t, S_t), the lines that leaked, and those that upstream had moved; without `tests`."""
    landed, agent, base, state = trees
    entered, upstream, reference = (
        {change for change in store.diff(old, new) if change.path not in tests}
        for old, new in ((agent, state), (landed, base), (agent, landed))
    )
    # Changes that both have would be counted twice and subtracted again.
    surplus = gained(store, entered - upstream) - gained(store, upstream - entered)
    by_count = surplus & gained(store, reference)
    if not by_count:
        return Counter(), Counter()
    by_diff = added(store, agent, state, tests) - added(store, landed, base, tests)
    leaked = by_count & by_diff & added(store, agent, landed, tests)
    return leaked, by_count - leaked


def gained(store: TreeStore, changes: Iterable[TreeChange]) -> Lines:
    """The lines that each changed path has more often than before; blank ones do not count."""
    texts = [
        [entry.blob if entry and entry.mode in (FILE, EXECUTABLE) else None for entry in (change.new, change.old)]
        for change in changes
    ]
    names = sorted({blob for pair in texts for blob in pair if blob})
    contents = {
        name: content.decode("utf-8", "replace").split("\n")
        for name, content in zip(names, store.blobs(names), strict=True)
    }
    found: Lines = Counter()
    for new, old in texts:
        found += Counter(contents.get(new or "", [])) - Counter(contents.get(old or "", []))
    return Counter({line: number for line, number in found.items() if line.strip()})


def added(store: TreeStore, old: str, new: str, tests: Collection[bytes]) -> Lines:
    """The lines that git's diff of two trees adds, renamed files paired."""
    arguments = ("diff-tree", "-r", "-p", "-M", "-U0", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    with store.stream(*arguments, old, new, "--") as output:
        patch = parse_patch(output.read().decode("utf-8", "surrogateescape"))
    test_paths = {path.decode("utf-8", "backslashreplace") for path in tests}
    return Counter(line for file in patch if file.path not in test_paths for line in file.added)
