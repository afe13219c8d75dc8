"""The detectors: each module of this folder holds one, as `DETECTOR`."""

from __future__ import annotations

from prchain.core.catalogue import Catalogue
from trajectories.agents.guidance.detector import Detector

DETECTORS = Catalogue[Detector](__name__, "DETECTOR")
