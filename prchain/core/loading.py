"""The settings of a command, loaded when it runs: a page of help has no use for Pydantic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prchain.core.settings import Settings


def load_settings(**flags: Any) -> Settings:
    """The settings, as `prchain.core.settings.Settings.load` gives them and with what it raises."""
    from prchain.core.settings import Settings

    return Settings.load(**flags)
