"""Settings, in rising order: the file prchain.toml, the environment, flags.

Variables that other tools define keep their names, ``GITHUB_TOKEN``, ``GITHUB_API_URL``, ``OPENAI_API_KEY`` and
``OPENAI_BASE_URL``; every other setting is ``PRCHAIN_`` and its name in capitals. An unknown name is refused
everywhere. Tables are in the file only. No `.env` is read.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from prchain.core.errors import SettingsError
from prchain.core.secrets.scrub import redact
from prchain.core.suggest import meant, nearest

FILE = "prchain.toml"

_PREFIX = "PRCHAIN_"

_OTHERS_NAMES = {
    "github_tokens": "GITHUB_TOKEN",
    "github_api_url": "GITHUB_API_URL",
    "llm_api_key": "OPENAI_API_KEY",
    "llm_base_url": "OPENAI_BASE_URL",
}

_TABLES = ("environments_build_variables", "purposes", "defaults")
"""Settings that are tables of the file, with no variable of the environment."""

_NO_SETTINGS = ("PRCHAIN_DEBUG", "PRCHAIN_GITHUB_SCHEMA", "PRCHAIN_TEST_")
"""How variables begin that share the prefix and are no settings: the debug switch and the switches of tests."""

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""USD per million tokens."""


class PurposeSettings(BaseModel):
    """What one purpose (``[purposes.judge]``) has of its own; what it does not name is as for all others."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: str | None = Field(default=None, min_length=1, max_length=255)
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The name of the environment variable that holds the key; the key itself is never here."""
    base_url: str | None = None
    """With an endpoint of its own a purpose has the key that `api_key_env` names, or none: never another's."""
    price_input: Price | None = None
    price_cached: Price | None = None
    price_output: Price | None = None
    """With a model or an endpoint of its own a purpose has prices of its own, never those of the others."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1, le=256)
    token_ids: bool = False
    """Whether what agent programs and `prchain record` ask comes with token ids and log-probabilities."""

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str | None, info: ValidationInfo) -> str | None:
        return value and _endpoint(value, has_key=info.data.get("api_key_env") is not None)

    @property
    def api_key(self) -> str | None:
        """The key that `api_key_env` names; None where it names none, or the variable is not set."""
        return (os.environ.get(self.api_key_env) or None) if self.api_key_env else None


class Settings(BaseSettings):
    """The settings of every command; made by `load`."""

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

    llm_api_key: SecretStr | None = None
    """The key of the models' endpoint; none for one that wants none."""

    llm_base_url: str = "https://api.openai.com/v1"
    """An OpenAI-compatible endpoint, up to what comes before ``/chat/completions``."""

    llm_model: str | None = Field(default=None, min_length=1, max_length=255)
    """The model that is asked, by the endpoint's name for it. Prices are that model's."""

    llm_price_input: Price | None = None
    """USD per million tokens that are sent. Where no prices are set, those of `prchain.core.llm.price_table` hold;
    where it has none, nothing is known of costs, and no budget can be kept."""

    llm_price_cached: Price | None = None
    """USD per million tokens that the endpoint reads from its cache; as `llm_price_input` where it is not given."""

    llm_price_output: Price | None = None
    """USD per million tokens of replies, reasoning included."""

    llm_concurrency: int = Field(default=8, ge=1, le=256)
    """How many calls one endpoint answers at once; the smallest number that a purpose of the endpoint names holds."""

    llm_timeout_seconds: float = Field(default=600, gt=0)
    """How long one call may take, in seconds. One that takes longer may be paid for all the same."""

    llm_max_tries: int = Field(default=5, ge=1, le=100)
    """How often a call is sent that cost nothing and may be better next time."""

    prompts_dir: Path | None = None
    """A folder with prompts of the user's own, in place of ours; `prchain.core.llm.own_prompts`."""

    agents_dir: Path | None = None
    """A folder with agent programs of the user's own; `trajectories.programs.spec`."""

    llm_script: Path | None = None
    """A script that answers in place of every model; `prchain.core.llm.scripted`."""

    environments_backend: str | None = None
    """Where commands and tests run, where ``--backend`` names nothing; None: Docker."""

    environments_engine: str | None = None
    """The Docker engine, e.g. ``ssh://HOST`` or ``unix:///PATH``; where it is not given, the one of DOCKER_HOST."""

    environments_base_image: str = Field(default="debian:bookworm-slim", min_length=1, max_length=255)
    """What images are built on: Debian or of its family. One that the engine lacks is pulled."""

    environments_recipes_dir: Path | None = None
    """A folder with recipes of the user's own; `environments.images.recipes`."""

    environments_index_url: SecretStr | None = None
    """The index of Python packages that builds use; where it is not given, the one that pip has built in."""

    environments_ca_bundle: Path | None = None
    """A file of certificates (PEM) that builds trust; it does not stay in the image."""

    environments_proxy: SecretStr | None = None
    """The proxy that builds reach the network through."""

    environments_build_network: str = Field(default="bridge", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """The engine's network that builds have: ``bridge``, ``host``, or one of the user's."""

    environments_build_timeout_seconds: float = Field(default=1800, gt=0)
    """How long a build may take, in seconds."""

    environments_neighbours: bool = True
    """Whether a stage may be proved in an image that was built for a neighbour in time and holds all that it asks for;
    false: each has an image of its own, or shares one with stages whose manifests agree."""

    environments_kept_gigabytes: float = Field(default=20, ge=0)
    """How much an engine keeps of stages that were set up, so that their next sandboxes begin there; 0: nothing."""

    environments_build_variables: dict[str, str] = {}
    """Variables of builds, e.g. ``GOPROXY`` or ``npm_config_registry``; they do not reach the image."""

    purposes: dict[str, PurposeSettings] = {}
    """What single purposes have of their own: tables ``[purposes.NAME]`` of the file."""

    defaults: dict[str, Any] = {}
    """Options of commands: tables ``[defaults.rollouts.run]`` of the file, which `prchain.defaults` reads."""

    @classmethod
    def load(cls, **flags: Any) -> Self:
        """Read prchain.toml of the current folder, the environment and `flags`; a flag that is None was not given.

        Raises `SettingsError`, which names the setting and where it stands, never its value.
        """
        given_flags = {name: value for name, value in flags.items() if value is not None}
        _refuse_unknown_variables()
        try:
            return cls(**given_flags)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            name = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                known = PurposeSettings.model_fields if name.startswith("purposes.") else cls.model_fields
                message = meant(str(first["loc"][-1]), known, "known are")
                raise SettingsError(f"{FILE}: {name} is not a setting; {message}") from None
            message = first["msg"].removeprefix("Value error, ")
            raise SettingsError(f"{_place(name, given_flags)}: {message[:1].lower()}{message[1:]}") from None
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

    @field_validator("llm_api_key")
    @classmethod
    def _check_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not re.fullmatch(r"[!-~]+", value.get_secret_value()):
            raise ValueError("must be a key without white space")
        return value

    @field_validator("llm_base_url")
    @classmethod
    def _check_base_url(cls, value: str, info: ValidationInfo) -> str:
        return _endpoint(value, has_key=info.data.get("llm_api_key") is not None)

    @property
    def mirrors_dir(self) -> Path:
        """Where git mirrors are kept."""
        return self.data_dir / "mirrors"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret in plain text, for `prchain.core.secrets.scrub.redact`."""
        password = urlsplit(self.db).password if "://" in self.db else None
        urls = [url.get_secret_value() for url in (self.environments_index_url, self.environments_proxy) if url]
        keys = [
            *(urlsplit(url).password for url in urls),
            self.llm_api_key and self.llm_api_key.get_secret_value(),
            *(p.api_key for p in self.purposes.values()),
        ]
        return (
            *(token.get_secret_value() for token in self.github_tokens),
            *(secret for secret in (password, *keys) if secret),
        )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redact(value, self.secrets) if isinstance(value, str) else value


class _Environment(PydanticBaseSettingsSource):
    """The settings in the environment; an empty variable counts as not set."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return os.environ.get(variable(field_name)) or None, field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {name: os.environ.get(variable(name)) for name in self.settings_cls.model_fields if name not in _TABLES}
        return {name: value for name, value in found.items() if value}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return _OTHERS_NAMES.get(name, _PREFIX + name.upper())


def _endpoint(value: str, *, has_key: bool) -> str:
    """The URL of an endpoint without its last slash; raises `ValueError` for one that cannot be, or would leak.

    Over plain http a key travels in the clear, so it goes to this machine and to private networks only. Without a key
    any host may be plain: what is sent is text of public repositories.
    """
    url = urlsplit(value)
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise ValueError("must be an http(s) URL, such as https://HOST/v1")
    if url.username or url.password:
        raise ValueError("must not hold credentials; put the key into the environment")
    if url.scheme == "http" and has_key and not _is_near(url.hostname):
        raise ValueError("must be https: over http the key would travel in the clear")
    return value.rstrip("/")


def _is_near(host: str) -> bool:
    try:
        return host in _LOOPBACK or ip_address(host).is_private
    except ValueError:
        return False


def _refuse_unknown_variables() -> None:
    known = {name: variable(name) for name in Settings.model_fields if name not in _TABLES}
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known.values() and not name.startswith(_NO_SETTINGS):
            # Compared without the prefix, which all share.
            near = nearest(name.removeprefix(_PREFIX), known)
            hint = f"did you mean {known[near]}?" if near else f"known are {', '.join(sorted(known.values()))}"
            raise SettingsError(f"the environment: {name} is not a setting; {hint}")


def _place(name: str, flags: Mapping[str, Any]) -> str:
    """Where the value that is used was set, as the user knows it."""
    if name in flags:
        return "--" + name.replace("_", "-")
    return variable(name) if os.environ.get(variable(name)) else f"{FILE}: {name}"
