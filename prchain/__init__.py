"""The door: the command group, the functions for programs, the demo. It may import everything; what all stages stand on
is `prchain.core`."""

from prchain.core import __version__ as __version__
