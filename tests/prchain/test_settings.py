from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from prchain.errors import SettingsError
from prchain.settings import Settings

TOKEN = "plain-looking-token-0123456789"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults_need_neither_file_nor_environment() -> None:
    settings = Settings.load()
    assert settings.db == "sqlite:///data/prchain.db"
    assert settings.github_api_url == "https://api.github.com"
    assert settings.github_tokens == ()
    assert settings.mirrors_dir == Path("data/mirrors")


def test_a_flag_outranks_the_environment_which_outranks_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "prchain.toml").write_text("workers = 3\nmax_wait_seconds = 1\nrequest_timeout_seconds = 5\n")
    monkeypatch.setenv("PRCHAIN_WORKERS", "4")
    monkeypatch.setenv("PRCHAIN_MAX_WAIT_SECONDS", "2")
    settings = Settings.load(workers=5, max_wait_seconds=None)
    assert (settings.workers, settings.max_wait_seconds, settings.request_timeout_seconds) == (5, 2, 5)


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "")
    assert Settings.load().github_api_url == "https://api.github.com"


@pytest.mark.parametrize("given", [f"{TOKEN},second-token", f" {TOKEN} , second-token ,"])
def test_github_token_takes_several_tokens(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", given)
    assert Settings.load().secrets == (TOKEN, "second-token")


@pytest.mark.parametrize("value", [f'"{TOKEN}"', f'["{TOKEN}"]'])
def test_tokens_can_stand_in_the_file(value: str, folder: Path) -> None:
    (folder / "prchain.toml").write_text(f"github_tokens = {value}\n")
    assert Settings.load().secrets == (TOKEN,)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("worker = 3", ["prchain.toml", "worker", "workers"]),
        ("[mine]\nworkers = 3", ["prchain.toml", "mine"]),
        ("workers = 'many'", ["prchain.toml", "workers", "integer"]),
        ("workers = 0", ["prchain.toml", "workers", "greater"]),
        ("github_tokens = 5", ["prchain.toml", "github_tokens", "text"]),
        ("workers =", ["prchain.toml"]),
    ],
)
def test_a_bad_file_is_refused_with_one_line_that_names_key_and_file(file: str, names: list[str], folder: Path) -> None:
    (folder / "prchain.toml").write_text(file)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert "\n" not in str(caught.value)
    for name in names:
        assert name in str(caught.value)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "prchain.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"prchain\.toml cannot be read"):
        Settings.load()


def test_a_mistyped_variable_is_refused_and_those_for_tests_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRCHAIN_TEST_ANYTHING", "1")
    monkeypatch.setenv("PRCHAIN_DEBUG", "1")
    Settings.load()
    monkeypatch.setenv("PRCHAIN_WORKER", "3")
    with pytest.raises(SettingsError, match="PRCHAIN_WORKER is not a setting"):
        Settings.load()


def test_a_bad_value_is_blamed_on_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^--max-wait-seconds: "):
        Settings.load(max_wait_seconds=-1)
    monkeypatch.setenv("PRCHAIN_WORKERS", "x")
    with pytest.raises(SettingsError, match=r"^PRCHAIN_WORKERS: "):
        Settings.load()


@pytest.mark.parametrize(
    "url", ["ftp://host", "api.github.com", f"https://u:{TOKEN}@host/api/v3", "http://github.example/api/v3"]
)
def test_an_api_url_that_would_fail_or_leak_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(github_api_url=url)
    assert url not in str(caught.value)


def test_an_api_url_loses_its_last_slash_and_may_be_plain_on_this_machine() -> None:
    assert Settings.load(github_api_url="http://127.0.0.1:8000/api/v3/").github_api_url.endswith(":8000/api/v3")


def test_no_secret_shows_in_the_repr_or_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    settings = Settings.load(db="postgresql://user:hunter2hunter2@host/db")
    assert settings.secrets == (TOKEN, "hunter2hunter2")
    for text in (repr(settings), str(settings)):
        assert TOKEN not in text
        assert "hunter2" not in text
    monkeypatch.setenv("PRCHAIN_WORKERS", TOKEN)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert TOKEN not in str(caught.value)


def test_dot_env_is_not_read(folder: Path) -> None:
    (folder / ".env").write_text(f"GITHUB_TOKEN={TOKEN}\nPRCHAIN_WORKERS=9\n")
    assert Settings.load().secrets == ()
    assert Settings.load().workers != 9


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings.load().workers = 9
