"""The store: tables, migrations, the only code that opens sessions, and named queries for people."""
