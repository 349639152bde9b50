# Slowwave. `make help` lists the targets; `make demo` shows the whole thing.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test setup install lint bench soak up lock clean

PYTHON_OF_VENV := .venv/bin/python
STAMP := .venv/slowwave-setup-is-complete

# Nothing reports to anybody.
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# The lock decides what is installed, the Makefile where. Settings of the caller's shell that would change
# either are dropped; those that say where packages are fetched from stay.
unexport PIP_CONSTRAINT PIP_REQUIREMENT PIP_NO_BINARY PIP_ONLY_BINARY PIP_PRE
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_REQUIRE_VIRTUALENV PIP_IGNORE_INSTALLED
unexport PYTHONHOME PYTHONPATH PYTHONSTARTUP VIRTUAL_ENV

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)$$/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

demo: setup ## six weeks of two tenants' memory, slept through, with the morning report
	@.venv/bin/slowwave demo

test: setup ## every check and every test
	@$(MAKE) --no-print-directory checks
	@$(PYTHON_OF_VENV) -m pytest -n 2 --dist loadfile

lint: install checks ## ruff, mypy strict, and the import contracts

.PHONY: checks
checks:
	@$(PYTHON_OF_VENV) -m ruff check --quiet --output-format concise .
	@$(PYTHON_OF_VENV) -m ruff format --check --quiet . || { echo "Some files are not formatted. Run: .venv/bin/ruff format ." >&2; exit 1; }
	@$(PYTHON_OF_VENV) -m mypy --no-error-summary
	@.venv/bin/lint-imports --no-cache > .venv/lint-imports.log 2>&1 || { cat .venv/lint-imports.log >&2; exit 1; }
	@echo "ruff, mypy and the import contracts: clean"

bench: setup ## measure the speed of the parts that must be fast
	@$(PYTHON_OF_VENV) -m tests.benchmarks

soak: setup ## the long tests that `make test` leaves out
	@$(PYTHON_OF_VENV) -m pytest -m soak --timeout 0

up: setup ## a Prefect server with its UI over the same Postgres, until Ctrl-C
	@$(PYTHON_OF_VENV) -m deployments.server

setup: install ## install everything and prepare the databases; quick when nothing changed
	@$(PYTHON_OF_VENV) -m memory_core.cli.main setup

# The first line of the stamp is what is installed, the second where: a virtual environment cannot be moved.
# The packages are part of it because an editable installation lists them.
CONTENT = $$(cat requirements.lock pyproject.toml | cksum) $$(ls -d memory_core tasks flows deployments 2>/dev/null | tr '\n' ' ')
FOLDER = $$(pwd -P)

# The stamp goes first and comes back last: an installation that was interrupted is made anew.
# Two at once take turns where flock exists (the lock goes with its process, so that none is left behind).
install:
	@set -eu; \
	if command -v flock >/dev/null 2>&1; then exec 9>.install.lock; flock 9; fi; \
	installed="$$(sed -n 1p $(STAMP) 2>/dev/null || true)"; \
	folder="$$(sed -n 2p $(STAMP) 2>/dev/null || true)"; \
	rebuild=no; \
	if [ "$$folder" != "$(FOLDER)" ] || ! $(PYTHON_OF_VENV) -c '' >/dev/null 2>&1; then rebuild=yes; fi; \
	if [ $$rebuild = no ] && [ "$$installed" = "$(CONTENT)" ]; then exit 0; fi; \
	rm -f $(STAMP); \
	if [ $$rebuild = yes ]; then \
		python="$$($(FIND_PYTHON))"; \
		echo "Creating .venv with $$("$$python" --version) …"; \
		rm -rf .venv; \
		"$$python" -m venv .venv; \
	fi; \
	echo "Installing locked dependencies (first time: about two minutes) …"; \
	$(PYTHON_OF_VENV) -m pip install -qq --no-deps --require-hashes --only-binary :all: --no-compile --requirement requirements.lock; \
	echo "Compiling them …"; \
	$(PYTHON_OF_VENV) -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true; \
	echo "Installing Slowwave itself …"; \
	$(PYTHON_OF_VENV) -m pip install -qq --no-deps --no-build-isolation --no-index --editable .; \
	$(PYTHON_OF_VENV) -m pip check --quiet; \
	printf '%s\n' "$(CONTENT)" "$(FOLDER)" > $(STAMP)

# Prints the first Python that is new enough and can make a virtual environment; says what is missing where there is none.
FIND_PYTHON = \
	lacking=; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
		"$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 || continue; \
		if "$$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then echo "$$candidate"; exit 0; fi; \
		lacking="$$candidate"; \
	done; \
	if [ -n "$$lacking" ]; then \
		version="$$("$$lacking" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"; \
		echo "Python $$version is here, but its modules venv and ensurepip are not. On Debian and Ubuntu: apt install python$$version-venv" >&2; \
	else \
		echo "Slowwave needs Python 3.11, 3.12 or 3.13, and found none. On Debian and Ubuntu: apt install python3 python3-venv. Another one can be named: make setup PYTHON=/path/to/python3.12" >&2; \
	fi; \
	exit 1

# Needs uv on the PATH. One resolution serves Python 3.11 to 3.13 on Linux (x86_64, aarch64) and macOS (arm64);
# its platform conditions are then dropped, so that another platform fails with a message rather than with packages left out.
lock: ## resolve the dependencies anew (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-build --quiet \
		--no-emit-index-url --no-emit-find-links --no-header --no-annotate --upgrade --output-file requirements.lock.new >/dev/null
	@sed -E -e "s/ and \(\(platform_machine [^\\]*\)\)//" -e "s/ and implementation_name != '[Pp]y[Pp]y'//" \
		-e "s/ ; python_full_version < '3.14' / /" -e "s/ and python_full_version < '3.14'//" requirements.lock.new > requirements.lock
	@rm -f requirements.lock.new

clean: ## remove what was installed and built here; memories and their database stay
	@rm -rf .venv .install.lock build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
