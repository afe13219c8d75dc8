"""Settings, in rising order: the file prchain.toml, the environment, flags.

GitHub's own names stay what they are everywhere else, ``GITHUB_TOKEN`` and ``GITHUB_API_URL``; every other setting is
``PRCHAIN_`` and its name in capitals. A name that is not known is refused, wherever it stands. No `.env` is read.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from prchain.errors import SettingsError
from prchain.scrub import redact

FILE = "prchain.toml"

_PREFIX = "PRCHAIN_"

_GITHUB_NAMES = {"github_tokens": "GITHUB_TOKEN", "github_api_url": "GITHUB_API_URL"}

_NO_SETTINGS = ("PRCHAIN_DEBUG", "PRCHAIN_GITHUB_SCHEMA", "PRCHAIN_TEST_")
"""How variables start that share the prefix and are no settings: the debug switch and what tests are told."""

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Settings(BaseSettings):
    """What every command can be told; made by `load`."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=_PREFIX, toml_file=FILE, hide_input_in_errors=True
    )

    db: str = "sqlite:///data/prchain.db"
    """The database: a SQLAlchemy URL of SQLite or PostgreSQL, or the path of a SQLite file."""

    data_dir: Path = Path("data")
    """Where files live that can be fetched again; mirrors are in its folder ``mirrors``."""

    github_tokens: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Tokens for GitHub's API, separated by commas in one text; each has a budget of its own."""

    github_api_url: str = "https://api.github.com"
    """GitHub's REST API, or that of a GitHub Enterprise server (``https://HOST/api/v3``)."""

    max_wait_seconds: float = Field(default=3900, ge=0)
    """The longest wait for a rate limit that a run accepts, in seconds. A budget is renewed every hour."""

    workers: int = Field(default=2, ge=1, le=64)
    """How many things a command does at once."""

    request_timeout_seconds: float = Field(default=30, gt=0)
    """How long one request to the API may take, in seconds."""

    @classmethod
    def load(cls, **flags: Any) -> Self:
        """Read prchain.toml of the current folder, the environment and `flags`; a flag that is None was not given.

        Raises `SettingsError`, which names the setting and where it stands, never its value.
        """
        given = {name: value for name, value in flags.items() if value is not None}
        _refuse_unknown_variables()
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            name = str(first["loc"][0])
            if first["type"] == "extra_forbidden":
                raise SettingsError(
                    f"{FILE}: {name} is not a setting; known are {', '.join(cls.model_fields)}"
                ) from None
            said = first["msg"].removeprefix("Value error, ")
            raise SettingsError(f"{_place(name, given)}: {said[:1].lower()}{said[1:]}") from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{FILE} cannot be read: {error}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{FILE} cannot be read: {type(error).__name__}") from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before the environment before the file, and nothing else."""
        return init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls)

    @field_validator("github_tokens", mode="before")
    @classmethod
    def _split_tokens(cls, value: Any) -> Any:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise ValueError("must be a text of tokens, separated by commas")
        tokens = tuple(part.strip() if isinstance(part, str) else part for part in parts if part != "")
        if any(isinstance(token, str) and not re.fullmatch(r"[!-~]*", token) for token in tokens):
            raise ValueError("must hold tokens without white space, separated by commas")
        return tuple(token for token in tokens if token)

    @field_validator("github_api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError("must be an http(s) URL, such as https://HOST/api/v3")
        if url.username or url.password:
            raise ValueError("must not hold credentials; put the token into GITHUB_TOKEN")
        if url.scheme == "http" and url.hostname not in _LOOPBACK:
            raise ValueError("must be https: over http the token would travel in the clear")
        return value.rstrip("/")

    @property
    def mirrors_dir(self) -> Path:
        """Where git mirrors are kept."""
        return self.data_dir / "mirrors"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret in plain text, for `prchain.scrub.redact`."""
        password = urlsplit(self.db).password if "://" in self.db else None
        return (*(token.get_secret_value() for token in self.github_tokens), *((password,) if password else ()))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redact(value, self.secrets) if isinstance(value, str) else value


class _Environment(PydanticBaseSettingsSource):
    """The settings that stand in the environment; an empty variable is one that is not set."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return os.environ.get(variable(field_name)) or None, field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {name: os.environ.get(variable(name)) for name in self.settings_cls.model_fields}
        return {name: value for name, value in found.items() if value}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return _GITHUB_NAMES.get(name, _PREFIX + name.upper())


def _refuse_unknown_variables() -> None:
    known = {variable(name) for name in Settings.model_fields}
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known and not name.startswith(_NO_SETTINGS):
            raise SettingsError(f"the environment: {name} is not a setting; known are {', '.join(sorted(known))}")


def _place(name: str, flags: Mapping[str, Any]) -> str:
    """Where the value stands that won, as the user knows it."""
    if name in flags:
        return "--" + name.replace("_", "-")
    return variable(name) if os.environ.get(variable(name)) else f"{FILE}: {name}"
