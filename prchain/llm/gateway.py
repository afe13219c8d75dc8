"""The name in release 0.1 of `prchain.core.llm.gateway`, for observers written then; it goes with release 0.3."""

import sys

from prchain.core.llm import gateway

sys.modules[__name__] = gateway
