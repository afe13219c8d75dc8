"""How much git would unpack of a patch, before git sees it."""

from __future__ import annotations

import zlib
from base64 import b85encode
from pathlib import Path

import pytest

from prchain.core.git.binary_patches import require_room, unpacked_size
from tests.miner.gitworld import World, git

HEAD = b"diff --git a/x b/x\nindex 1111111..2222222 100644\nGIT binary patch\n"


def lines(unpacked: bytes) -> bytes:
    packed = zlib.compress(unpacked)
    parts = [packed[place : place + 26] for place in range(0, len(packed), 26)]
    return b"".join(b"%c%s\n" % (ord("A") + len(part) - 1, b85encode(part, pad=True)) for part in parts)


def varint(size: int) -> bytes:
    found = b""
    while size >= 0x80:
        found += bytes([size & 0x7F | 0x80])
        size >>= 7
    return found + bytes([size])


def test_a_patch_of_git_s_own_is_as_large_as_its_files(tmp_path: Path) -> None:
    world = World(tmp_path / "x.git")
    before, after = bytes(range(256)) * 40, bytes(range(256)) * 39 + b"\0end"
    commits = [
        world.commit("main", {"a": before, "b": "text\n"}, "one"),
        world.commit("main", {"a": after, "b": "other\n"}, "two"),
    ]
    world.save()
    first, second = map(world.sha, commits)
    patch = git(world.path, "diff", "--binary", first, second).encode()
    assert b"GIT binary patch" in patch
    assert len(after) <= unpacked_size(patch) <= 3 * len(before)
    assert unpacked_size(git(world.path, "diff", first, second, "--", "b").encode()) == 0


def test_what_a_part_says_of_itself_counts_also_where_it_is_a_lie() -> None:
    assert unpacked_size(HEAD + b"literal 99999999999\n" + lines(b"x")) == 99_999_999_999
    bomb = varint(5) + varint(1 << 40) + b"\x91\x00\xff" * 10
    assert unpacked_size(HEAD + b"delta 40\n" + lines(bomb)) == 40 + (1 << 40)


@pytest.mark.parametrize(
    "tail", [b"", b"delta 4\n", b"delta 4\n\n", b"delta 4\nA!!\n", b"delta 4\nzzzz", b"literal x\n"]
)
def test_what_git_would_refuse_is_no_error_here(tail: bytes) -> None:
    assert unpacked_size(HEAD + tail) in {0, 4}


@pytest.mark.parametrize(
    "size", [b"157286400 ", b"+157286400", b" 157286400", b"0" * 20 + b"157286400", b"157286400\t"]
)
def test_a_size_that_git_reads_and_does_not_write_is_refused(size: bytes) -> None:
    for kind in (b"literal ", b"delta "):
        with pytest.raises(ValueError, match="size that git does not write"):
            require_room(HEAD + kind + size + b"\n" + lines(b"x"))
    require_room(HEAD + b"literal 1\n" + lines(b"x") + b"\n-literal x\n+literal y\n literal z\n")
