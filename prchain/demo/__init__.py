"""The demo: every stage of prchain on a small repository that is made on the spot, without network and keys."""
