"""The forms of data sets that are read: each module of this folder holds one, as `READER`."""

from __future__ import annotations

from chains.imports.reader import Reader
from prchain.core.catalogue import Catalogue

FORMS = Catalogue[Reader](__name__, "READER")
