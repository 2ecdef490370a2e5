"""What `make check` looks at besides the usual tools.

Each module has `problems(root)`: one clear sentence for each fault found, an empty list otherwise.
"""
