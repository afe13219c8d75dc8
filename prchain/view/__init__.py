"""The database as pages: served on this machine, or written as a folder of files."""
