from __future__ import annotations

import pytest

from prchain.core import errors


def tree(base: type[errors.PrchainError]) -> set[type[errors.PrchainError]]:
    return {base}.union(*(tree(child) for child in base.__subclasses__() if child.__module__ == errors.__name__))


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (errors.NoPullRefs("x"), "no_pull_refs"),
        (errors.ForgeError("x"), "forge_error"),
        (errors.NotARepository("x"), "not_a_repository"),
        (errors.StoreTooNew("x"), "store_too_new"),
        (errors.RateLimitExceeded("x", 5.0), "rate_limit_exceeded"),
    ],
)
def test_a_failures_name_is_its_class_in_snake_case(error: errors.PrchainError, name: str) -> None:
    assert error.name == name


def test_no_two_failures_share_a_name() -> None:
    kinds = tree(errors.PrchainError)
    names = {kind("x", 1.0).name if kind is errors.RateLimitExceeded else kind("x").name for kind in kinds}
    assert len(names) == len(kinds) > 20


def test_the_drawing_of_the_tree_shows_every_failure_below_its_parent() -> None:
    parents: list[str] = []
    drawn = {}
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("|", " ").replace("`", " ").replace("--", "  ")
        if not words.strip() or not words.split()[0].isidentifier() or words.split()[0] not in vars(errors):
            continue
        depth = (len(words) - len(words.lstrip()) - 4) // 4
        name = words.split()[0]
        parents[depth:] = [name]
        drawn[name] = parents[depth - 1] if depth else None
    assert drawn == {
        kind.__name__: None if kind is errors.PrchainError else kind.__bases__[0].__name__
        for kind in tree(errors.PrchainError)
    }


def test_wrong_usage_exits_with_2_and_everything_else_with_1() -> None:
    for kind in tree(errors.PrchainError):
        assert kind.exit_code == (2 if issubclass(kind, errors.UsageError) else 1)


def test_failures_are_caught_as_their_kin_of_the_standard_library() -> None:
    assert issubclass(errors.StoreUnavailable, OSError)
    assert issubclass(errors.NetworkUnreachable, ConnectionError)
    assert issubclass(errors.SettingsError, ValueError)
    assert str(errors.StoreUnavailable("one line")) == "one line"
