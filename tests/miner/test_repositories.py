"""The list of repositories: what it takes, what it refuses, and what it never shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from miner.repositories import RepositorySpec, parse_entry, read_list
from prchain.core.errors import RepositoryListError
from tests.prchain.secrets_table import DRAWN_TOKEN

SECRET = "hunter2hunter2"


def parse(entry: str) -> RepositorySpec:
    return parse_entry(entry, "github.com", Path("/lists"))


def parse_list(tmp_path: Path, content: str | bytes) -> list[RepositorySpec]:
    path = tmp_path / "repos.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_list(path, "github.com")


@pytest.mark.parametrize(
    ("entry", "host", "name", "location", "is_path"),
    [
        ("o/n", "github.com", "o/n", "https://github.com/o/n.git", False),
        ("o/n.git", "github.com", "o/n", "https://github.com/o/n.git", False),
        ("Some-One/a.b_c-d", "github.com", "Some-One/a.b_c-d", "https://github.com/Some-One/a.b_c-d.git", False),
        ("o/.github", "github.com", "o/.github", "https://github.com/o/.github.git", False),
        ("o/-n", "github.com", "o/-n", "https://github.com/o/-n.git", False),
        ("https://github.com/o/n", "github.com", "o/n", "https://github.com/o/n", False),
        ("https://GitHub.com/o/n.git/", "github.com", "o/n", "https://GitHub.com/o/n.git/", False),
        ("https://git.host:8443/o/n", "git.host", "o/n", "https://git.host:8443/o/n", False),
        ("https://git.host/group/deep/o/n", "git.host", "o/n", "https://git.host/group/deep/o/n", False),
        ("ssh://git@host/o/n.git", "host", "o/n", "ssh://git@host/o/n.git", False),
        ("git@host:o/n.git", "host", "o/n", "git@host:o/n.git", False),
        ("git://host/o/n", "host", "o/n", "git://host/o/n", False),
        ("file:///srv/o/n.git", "github.com", "o/n", "file:///srv/o/n.git", False),
        ("o/n = ../m/n.git", "github.com", "o/n", "/lists/../m/n.git", True),
        ("o/n=m", "github.com", "o/n", "/lists/m", True),
        ("o/n = /srv/a b#c.git", "github.com", "o/n", "/srv/a b#c.git", True),
        ("o/n = -oProxyCommand=x", "github.com", "o/n", "/lists/-oProxyCommand=x", True),
        ("o/n = https://mirror.host/x/y", "mirror.host", "o/n", "https://mirror.host/x/y", False),
        ("o/n = git@host:y.git", "host", "o/n", "git@host:y.git", False),
        ("o/n = file:///srv/y", "github.com", "o/n", "file:///srv/y", False),
    ],
)
def test_every_way_to_name_a_repository(entry: str, host: str, name: str, location: str, is_path: bool) -> None:
    spec = parse(entry)
    assert (spec.host, spec.full_name, spec.location, spec.is_path) == (host, name, location, is_path)


@pytest.mark.parametrize(
    "entry",
    [
        "n",
        "o/n/m",
        "o /n",
        "o/n m",
        "/o/n",
        "o/",
        "o/..",
        "o/.",
        "../n",
        "o/...git",
        ".o/n",
        "-o/n",
        "o\u202e/n",
        "ö/n",
        "o" * 100 + "/n",
        "o/" + "n" * 101,
        "o/n =",
        "= path",
        "o/n = a\x00b",
        "o/n = \x1b[2Jb",
        "o/n = ~nobody-of-this-name/x",
        "https://github.com/n",
        "https://github.com/o/..",
        "https://github.com/../../o/..",
        "https://github.com/o/n/pull/12",
        "https://github.com/o/n/tree/main",
        "https://../o/n",
        "https://a..b/o/n",
        "https:///o/n",
        "https://[::1/o/n",
        "https://host:port/o/n",
        "https://host/o/n?private_token=x",
        "https://host/o/n#readme",
        "https://evil.host\\@github.com/o/n",
        "https://exa\u2100mple.com/o/n",
        "ftp://host/o/n",
        "javascript://host/o/n",
        "ext::sh -c touch% /tmp/x",
        "o/n = ext::sh -c x",
        "o/n = ext::o/n",
        "o/n = fd::7",
        "o/n = transport://host/o/n",
        "-oProxyCommand=x",
        "--upload-pack=x",
        "ssh://-oProxyCommand=x/o/n",
        "ssh://somebody@-oProxyCommand=x/o/n",
        "o/n = ssh://somebody@-oProxyCommand=x/o/n",
        "git@-oProxyCommand=x:o/n",
        "git@host:-oProxyCommand=x/o/n",
        "git@host:n",
    ],
)
def test_what_names_no_repository_or_is_a_trick_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"'") as refused:
        parse(entry)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert "\u202e" not in str(refused.value)


@pytest.mark.parametrize(
    "entry",
    [
        f"https://{SECRET}@host/o/n",
        f"https://somebody:{SECRET}@host/o/n.git",
        f"o/n = https://somebody:{SECRET}@host/x/y",
        f"ssh://somebody:{SECRET}@host/o/n",
    ],
)
def test_credentials_reach_git_but_not_the_line_that_is_stored(entry: str) -> None:
    spec = parse(entry)
    assert spec.host == "host"
    assert SECRET in spec.location
    assert SECRET not in spec.text
    assert "host" in spec.text


@pytest.mark.parametrize(
    "entry",
    [
        f"https://somebody:{SECRET}@host/only-a-name",
        f"https://somebody:a@{SECRET}@host/o/n",
        f'https://somebody:a"{SECRET}@host/o/n',
        f"https://somebody:a/{SECRET}@host/o/n",
        f"https://somebody:{SECRET}@exa\u2100mple.com/o/n",
        f"https://somebody:{SECRET}@[bad/o/n",
        f"https://somebody:{SECRET}@..:x/o/n",
        f"ftp://somebody:{SECRET}@host/o/n",
        f"o/n = ftp://somebody:{SECRET}@host/o/n",
        f"somebody:{SECRET}@host:o/n",
        f"https://host/o/n?private_token={SECRET}",
        f"https://somebody:{SECRET}@host/o/n\x07",
        f"not a repository {DRAWN_TOKEN}",
    ],
)
def test_credentials_of_a_line_that_is_refused_are_not_shown(entry: str) -> None:
    with pytest.raises(ValueError, match=r"'") as refused:
        parse(entry)
    assert SECRET not in str(refused.value) and DRAWN_TOKEN not in str(refused.value)


def test_comments_blank_lines_a_byte_order_mark_and_line_ends_of_any_kind(tmp_path: Path) -> None:
    content = "\ufeff# the list\r\n\r\n  o/a  # the first\r\no/b\t# the second\n#o/c\n\n\to/d\ro/e"
    assert [spec.full_name for spec in parse_list(tmp_path, content)] == ["o/a", "o/b", "o/d", "o/e"]


def test_a_comment_with_odd_characters_is_one_line(tmp_path: Path) -> None:
    assert [spec.full_name for spec in parse_list(tmp_path, "# a\x0cb\u2028c\x85d\no/a\n")] == ["o/a"]


def test_paths_are_relative_to_the_folder_of_the_list(tmp_path: Path) -> None:
    [spec] = parse_list(tmp_path, "o/n = mirrors/n.git\n")
    assert spec.location == str(tmp_path / "mirrors/n.git")
    assert spec.text == "o/n = mirrors/n.git"


@pytest.mark.parametrize(
    "content", ["o/n\nO/N\n", "o/n\nhttps://github.com/o/n\nhttps://github.com/o/n.git/\n", "o/n = m\no/n = m\n"]
)
def test_a_repository_that_is_listed_twice_is_mined_once(content: str, tmp_path: Path) -> None:
    assert [spec.full_name for spec in parse_list(tmp_path, content)] == ["o/n"]


def test_the_same_name_on_two_hosts_is_two_repositories(tmp_path: Path) -> None:
    specs = parse_list(tmp_path, "o/n\nhttps://git.host/o/n\n")
    assert [spec.host for spec in specs] == ["github.com", "git.host"]


@pytest.mark.parametrize("content", ["o/n\no/n = m\n", "o/n = a\n# b\nO/N = b\n", "o/n\nssh://git@github.com/o/n\n"])
def test_one_repository_from_two_sources_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(RepositoryListError, match=r"repos\.txt:[23]: \S+ is listed twice, with different sources$"):
        parse_list(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# nothing\n\n", "repos.txt lists no repository; write one owner/name a line"),
        ("", "repos.txt lists no repository; write one owner/name a line"),
        ("o/n\r\n\r\nwhat?\r\n", "repos.txt:3: 'what?' is not owner/name"),
        (b"o/n\n\xff\n", "repos.txt is not UTF-8 text"),
    ],
)
def test_errors_name_file_and_line(content: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(RepositoryListError) as refused:
        parse_list(tmp_path, content)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_long_line_is_shown_in_part() -> None:
    with pytest.raises(ValueError, match=r"'") as refused:
        parse("x" * 100_000)
    assert len(str(refused.value)) < 400


entries = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "o",
                "n",
                "/",
                "/",
                "..",
                ".",
                ".git",
                "=",
                " ",
                "https://",
                "file://",
                "ssh://",
                "git@",
                ":",
                "@",
                "-",
                "~",
                "::",
                "ext",
                "#",
                "?",
                "\\",
                "%2e%2e",
                "host",
                "[",
                "]",
                "\x00",
                "\u202e",
                "\u2100",
                "1",
            ]
        ),
        max_size=14,
    ).map("".join),
)


@settings(max_examples=400, deadline=None)
@given(entries)
@example("o/n = ~\x00")
@example("https://host/%2e%2e/..")
@example("file://../o/n")
def test_no_entry_crashes_the_parser_or_gets_a_path_into_a_name(entry: str) -> None:
    try:
        spec = parse(entry.strip())
    except ValueError as refused:
        assert type(refused) is ValueError
        return
    for part in (spec.host, spec.owner, spec.name):
        assert part
        assert part not in {".", ".."}
        assert not set(part) & set("/\\\x00 \n")
    assert ".." not in spec.host
    assert not spec.owner.startswith(("-", "."))
    assert not spec.host.startswith(("-", "."))
    assert not spec.location.startswith("-")
    folder = Path("/mirrors")
    mirror = folder / spec.host / spec.owner.lower() / f"{spec.name.lower()}.git"
    assert mirror.resolve().is_relative_to(folder.resolve())
    assert len(mirror.parts) == 5


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80) | st.lists(entries, max_size=4).map(lambda lines: "\n".join(lines).encode()))
def test_no_file_crashes_the_reader(content: bytes, tmp_path: Path) -> None:
    try:
        specs = parse_list(tmp_path, content)
    except RepositoryListError as refused:
        assert str(refused).startswith(f"{tmp_path}/repos.txt")
        assert "\n" not in str(refused)
    else:
        assert specs
