"""What runs in containers of exported tasks: it is packed, with all that it imports, and needs Python's own library."""
