"""The name in release 0.1 of `trajectories.agents.scaffolds.scaffold`, for observers written then; it goes with 0.3."""

import sys

from trajectories.agents.scaffolds import scaffold

sys.modules[__name__] = scaffold
