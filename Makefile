# Python 3.11 or newer, make and the usual package registries are all that these need.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; \
	done)
OURS := .venv/bin/python
UV := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command 'make lock' $(UPGRADE)

# Without its bytecode kept, every process compiles its libraries anew: ten seconds each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run reset test walkthrough proofs simulate sabotage mutants bench bench-peers check fix translations docs lock

help:
	@echo 'make run           the whole house on this machine, until Ctrl-C'
	@echo 'make reset         drop the data that make run keeps in var/'
	@echo 'make test          every test; ARGS="-k stay -x" goes to pytest'
	@echo 'make walkthrough   the main job and its mishaps, driven from outside an isolated house'
	@echo 'make proofs        kill, race and cut real processes; the promises of the edges hold'
	@echo 'make simulate      a month of 500 members with everything that goes wrong in one; ARGS="--seed 7"'
	@echo 'make sabotage      break a promise at a time and see which check turns red'
	@echo 'make mutants       small faults in what decides: which of them no test sees; ARGS="verbs/stays"'
	@echo 'make bench         what it costs beside a hand-written loop; ARGS="events outbox"'
	@echo 'make bench-peers   what two well-known libraries take for the like'
	@echo 'make check         lint, types, layers, templates, translations, migrations'
	@echo 'make fix           format, and fix what the linter can'
	@echo 'make translations  bring new messages into the catalogues'
	@echo 'make docs          write docs/states.md from the machines'
	@echo 'make lock          lock the dependencies anew; UPGRADE=--upgrade for newer ones'
	@echo 'make setup         what all of these do first'

setup:
	@test -n "$(PYTHON)" || { echo 'Monban needs Python 3.11 or newer.' >&2; exit 1; }
	@$(PYTHON) -m sandbox.setup

run: setup
	@exec $(OURS) -m sandbox.run

reset:
	@$(PYTHON) -m sandbox.var

test: setup
	@$(OURS) -m sandbox.browser
	@exec $(OURS) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

walkthrough: setup
	@exec $(OURS) -m sandbox.walkthrough

proofs: setup
	@exec $(OURS) -m pytest -q -m proof --whole tests $(ARGS)

simulate: setup
	@exec $(OURS) -m sandbox.simulation $(ARGS)

sabotage: setup
	@exec $(OURS) -m sandbox.sabotage $(ARGS)

mutants: setup
	@exec $(OURS) -m sandbox.mutation $(ARGS)

bench: setup
	@exec $(OURS) -m benchmarks $(ARGS)

bench-peers: setup
	@exec $(OURS) -m benchmarks.peers

check: setup
	@exec $(OURS) -m sandbox.check

fix: setup
	@.venv/bin/ruff check --quiet --fix
	@.venv/bin/ruff format --quiet

translations: setup
	@$(OURS) -m sandbox.translations update
	@$(OURS) -m sandbox.translations compile

docs: setup
	@$(OURS) -m sandbox.states_page

lock: setup
	@$(UV) pyproject.toml -o requirements/app.lock
	@$(UV) pyproject.toml --group dev -c requirements/app.lock -o requirements/all.lock
	@$(UV) --group peers -o requirements/peers.lock
	@$(UV) --group node -o requirements/node.lock
	@$(UV) --group uv -o requirements/uv.lock
	@npm install --package-lock-only --ignore-scripts --silent
