# `make` alone tells what there is. Python 3.11 or newer and make are all that it needs.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; \
	done)

.PHONY: setup

setup:
	@test -n "$(PYTHON)" || { echo "Monban needs Python 3.11 or newer." >&2; exit 1; }
	@$(PYTHON) -m sandbox.setup
