"""What a build takes from the settings: where it runs, what it starts from, and how it reaches package indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from environments.images.image_plan import BUILD
from prchain.core.errors import SettingsError

if TYPE_CHECKING:
    from prchain.core.settings import Settings

_BUNDLE = f"{BUILD}/ca.pem"

_BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "npm_config_cafile",
)


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How images are built."""

    base_image: str
    recipes_dir: Path | None = None
    timeout: float = 1800.0
    """Seconds for a whole build."""
    network: str = "bridge"
    ca_bundle: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the build's commands; they do not reach the image."""
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """From the settings; raises `SettingsError` for a CA bundle that cannot be read."""
        bundle = b""
        if settings.environments_ca_bundle is not None:
            try:
                bundle = settings.environments_ca_bundle.read_bytes()
            except OSError as error:
                raise SettingsError(f"environments_ca_bundle cannot be read: {type(error).__name__}") from None
        index = settings.environments_index_url
        proxy = settings.environments_proxy
        variables = dict(settings.environments_build_variables)
        if index is not None:
            variables |= dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), index.get_secret_value())
        if proxy is not None:
            names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
            variables |= dict.fromkeys(names, proxy.get_secret_value())
        if bundle:
            variables = {**dict.fromkeys(_BUNDLE_VARIABLES, _BUNDLE), **variables}
        return cls(
            base_image=settings.environments_base_image,
            recipes_dir=settings.environments_recipes_dir,
            timeout=settings.environments_build_timeout_seconds,
            network=settings.environments_build_network,
            ca_bundle=bundle,
            variables=variables,
            secrets=settings.secrets,
        )

    @property
    def files(self) -> dict[str, bytes]:
        """Files of the build's folder: the CA bundle, and the word to apt about it."""
        if not self.ca_bundle:
            return {}
        return {"ca.pem": self.ca_bundle, "apt.conf": f'Acquire::https::CaInfo "{_BUNDLE}";\n'.encode()}
