from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from prchain.core.errors import SettingsError
from prchain.core.settings import Settings

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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PRCHAIN_WORKER", "did you mean PRCHAIN_WORKERS"),
        ("PRCHAIN_GITHUB_TOKEN", "did you mean GITHUB_TOKEN"),
        ("PRCHAIN_ZZZ", "known are GITHUB_API_URL"),
    ],
)
def test_of_a_mistyped_variable_the_nearest_one_is_named(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(SettingsError, match=f"{name} is not a setting; {words}"):
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


def test_the_endpoint_and_its_key_have_the_names_that_others_gave_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().llm_base_url == "https://api.openai.com/v1"
    assert Settings.load().llm_api_key is None
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://llm.example/v1/")
    monkeypatch.setenv("PRCHAIN_LLM_MODEL", "small")
    monkeypatch.setenv("PRCHAIN_LLM_PRICE_INPUT", "0.25")
    settings = Settings.load()
    assert (settings.llm_base_url, settings.llm_model, settings.llm_price_input) == (
        "https://llm.example/v1",
        "small",
        0.25,
    )
    assert settings.secrets == (TOKEN,)
    assert TOKEN not in repr(settings)


def test_a_purpose_has_a_table_in_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "prchain.toml").write_text(
        'llm_model = "small"\n[purposes.judge]\nmodel = "large"\napi_key_env = "JUDGE_KEY"\ntemperature = 0.0\n'
    )
    judge = Settings.load().purposes["judge"]
    assert (judge.model, judge.temperature, judge.api_key) == ("large", 0.0, None)
    monkeypatch.setenv("JUDGE_KEY", TOKEN)
    settings = Settings.load()
    assert settings.purposes["judge"].api_key == TOKEN
    assert settings.secrets == (TOKEN,)
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ('[purposes.judge]\nmodle = "x"', r"purposes\.judge\.modle is not a setting; did you mean model\?"),
        ('[purposes.judge]\nzzz = "x"', r"purposes\.judge\.zzz is not a setting; known are model, api_key_env"),
        ('[purpose.judge]\nmodel = "x"', r"purpose is not a setting; did you mean purposes\?"),
        ("worker = 3", r"worker is not a setting; did you mean workers\?"),
        ('[purposes.judge]\napi_key = "sk-planted-0123456789"', r"purposes\.judge\.api_key is not a setting"),
        ('[purposes.judge]\napi_key_env = "sk-planted-0123456789"', r"purposes\.judge\.api_key_env: "),
        ("[purposes.judge]\nprice_input = -1", r"purposes\.judge\.price_input: "),
        ("[purposes.judge]\nprice_output = nan", r"purposes\.judge\.price_output: "),
        ('[purposes.judge]\nbase_url = "llm.example"', r"purposes\.judge\.base_url: must be an http"),
        ('[purposes.judge]\napi_key_env = "K"\nbase_url = "http://8.8.8.8/v1"', r"base_url: must be https"),
        ("purposes = 5", r"purposes: "),
        ("[purposes]\njudge = 5", r"purposes\.judge: "),
        ("llm_price_input = inf", r"llm_price_input: "),
        ("llm_concurrency = 0", r"llm_concurrency: "),
    ],
)
def test_a_bad_table_is_refused_by_name_without_its_value(file: str, words: str, folder: Path) -> None:
    (folder / "prchain.toml").write_text(file)
    with pytest.raises(SettingsError, match=rf"prchain\.toml.*{words}") as caught:
        Settings.load()
    assert "planted" not in str(caught.value)


def test_tables_have_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRCHAIN_PURPOSES", "{}")
    with pytest.raises(SettingsError, match="PRCHAIN_PURPOSES is not a setting"):
        Settings.load()


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "http://127.0.0.1/v1", "http://10.1.2.3/v1", "http://[::1]:1/v1"]
)
def test_a_key_may_go_over_plain_http_where_it_stays_near(url: str) -> None:
    assert Settings.load(llm_base_url=url, llm_api_key="k" * 20).llm_base_url == url


@pytest.mark.parametrize("url", ["http://llm.example/v1", "http://8.8.8.8/v1", "http://[2001:4860:4860::8888]/v1"])
def test_a_key_may_not_go_over_plain_http_to_strangers(url: str) -> None:
    assert Settings.load(llm_base_url=url).llm_base_url == url
    with pytest.raises(SettingsError, match="--llm-base-url: must be https"):
        Settings.load(llm_base_url=url, llm_api_key="k" * 20)


@pytest.mark.parametrize("url", ["ftp://h/v1", "h/v1", "https://u:p@h/v1", "https://h/v1?key=x", "https:///v1"])
def test_an_endpoint_that_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="--llm-base-url: must"):
        Settings.load(llm_base_url=url)


@pytest.mark.parametrize("key", ["two words", "line\nend", "kéy"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY: must be a key") as caught:
        Settings.load()
    assert key not in str(caught.value)
