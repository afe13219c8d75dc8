"""The name in release 0.1 of `prchain.core.errors`, for observers written then; it goes with release 0.3."""

import sys

from prchain.core import errors

sys.modules[__name__] = errors
