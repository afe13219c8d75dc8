"""One module a migration, ``mNNNN_name.py``, in the order of their numbers. A released one never changes."""
