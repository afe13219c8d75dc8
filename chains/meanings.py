"""What each outcome of a landed pull request means, in the words of `docs/outcomes.md`."""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "chained": "it is a stage of a chain that was chosen",
    "frozen": "it is a stage of a chain that has a task already, chosen by an earlier run",
    "not_chosen": "its edges lead to others that went to chains of greater confidence",
    "unlinked": "nothing that may be a stage builds on it, and it builds on nothing that may",
    "benchmark_repository": "the repository is one that evaluation benchmarks are made from",
    "benchmark_instance": "it is in the user's list of benchmark instances",
    "licence_unknown": "the repository has no licence file, or none that is known",
    "licence": "the repository's licence is not among those allowed",
    "patch_unreadable": "the mirror lacks files of its patch; mining tells the command that fetches them",
    "nothing_changed": "the patch is empty",
    "revert": "it takes an earlier pull request back, and does nothing else",
    "reverted": "a later pull request took it back, and it never landed again",
    "backport": "it repeats, on another branch, one that landed as itself",
    "dependency_bump": "it updates dependencies: says so, and changes only what such updates change",
    "release": "it makes a release: says so, and changes only what releases change",
    "bot_housekeeping": "a bot made it, and no program text changed but in how it is written",
    "docs_only": "documentation and examples",
    "tests_only": "tests, fixtures, snapshots and benchmarks; also tests inside source files (Rust)",
    "ci_only": "how machines check the project",
    "lock_only": "lock files",
    "generated_only": "generated files",
    "vendored_only": "other projects' files",
    "no_source": "several of these, and nothing else",
    "config_only": "no program text: configuration, with or without the above",
    "data_only": "no program text: data or pictures, with or without the above",
    "cosmetic": "white space, comments, docstrings, annotations and the order of imports",
    "renames_only": "the same tokens, with a few names replaced throughout",
    "moves_only": "the same lines in other files, but for imports",
    "source_too_small": "fewer changed lines of program text than `--min-lines`; with 1, one-line fixes stay",
    "source_too_large": "more than `--max-lines`",
    "too_many_files": "more files of program text than `--max-files`",
    "language": "mostly in a language that was not asked for",
    "outside_paths": "it changes program text elsewhere than `--path` says",
    "no_text": "nothing but a subject that says nothing",
    "no_tests": "it changes no file of tests that could prove it (only with `--with-tests`)",
    "low_worth": "too unlikely to make a sensible task: its worth is below `--worth`",
    "tree_incomplete": "the mirror lacked files of the tree before it when it was mined: nothing can work on that",
}
"""Outcome to its meaning; the filters stand in the order in which they are asked."""
