"""Migrations of the store; `sql.migrate` applies them."""
