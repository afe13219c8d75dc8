"""Harbor's own command line over exported tasks: `python -m research.harbor --folder OUT --harbor PROGRAM`."""
