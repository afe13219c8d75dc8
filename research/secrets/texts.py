"""The texts of a repository that prchain stores or shows: messages, names of refs, and added lines of patches."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from prchain.core.git import GitRepository
from prchain.core.storable import clean_text

SOURCES = ("message", "ref", "patch")


class Text(NamedTuple):
    """A text, and where it stands."""

    source: str
    place: str
    text: str


def texts(repository: GitRepository) -> Iterator[Text]:
    """Each different text once, of all branches, tags and pulls.

    Patches are those of commits with one parent, a text a file: its added lines with their marks. Left out are commits
    that need a blob which the repository lacks.
    """
    refs = repository.refs()
    seen: set[bytes] = set()
    for text in _all_texts(repository, refs):
        digest = blake2b(text.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest not in seen:
            seen.add(digest)
            yield text


def _all_texts(repository: GitRepository, refs: dict[str, str]) -> Iterator[Text]:
    for name in refs:
        if name.startswith(("refs/heads/", "refs/tags/")):
            yield Text("ref", name, name.split("/", 2)[2])
    pairs = []
    for commit in repository.commits(sorted(set(refs.values()))):
        yield Text("message", commit.sha, clean_text(commit.message.decode("utf-8", "replace")))
        if len(commit.parents) == 1:
            pairs.append((commit.parents[0], commit.sha))
    blobs = [
        {blob for change in changes for blob in (change.old_blob, change.new_blob) if blob.strip("0")}
        for changes in repository.changes(pairs)
    ]
    missing = repository.missing(set().union(*blobs))
    whole = [pair for pair, needed in zip(pairs, blobs, strict=True) if not needed & missing]
    for (_, sha), files in zip(whole, repository.patches(whole), strict=True):
        for file in files:
            if added := file.added:
                yield Text("patch", f"{sha[:12]}:{file.path}", clean_text("".join(f"+{line}\n" for line in added)))
