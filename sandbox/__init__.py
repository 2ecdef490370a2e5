"""Stand-ins and launchers for a machine without accounts: `make run` and the tests live on them."""
