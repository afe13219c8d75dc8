"""The processes of this machine: those that were started, one that is cut off, whether one lives."""
