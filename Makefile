# Each target makes the virtual environment that it needs; python3 (3.11 or newer), make and a package index suffice.
PYTHON ?= python3
TEST_VENV ?= .venv-test
DEMO_VENV ?= .demo
# Many tests wait for servers of their own, so more of them run at once than there are cores; a module's tests stay in
# one process, so that what they share is made once.
PYTEST_ARGS ?= -n 4 --dist loadfile

TEST := $(TEST_VENV)/bin
DEMO := $(DEMO_VENV)/bin
RELEASE ?= 0.5.23
SERVING ?= python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help demo demo-sglang test check lint format types layers pytest test-releases bench clean
.DEFAULT_GOAL := help

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(DEMO_VENV)/ready ## Preflight, run and reconcile on the small serving checkout: a clean pass, then a caught fault (no GPU)
	@$(DEMO)/python fixtures/demo.py

demo-sglang: $(DEMO_VENV)/ready ## Map a real SGLang release from the package index
	@source=$$($(DEMO)/python fixtures/sglang_release.py $(RELEASE)) && \
	set -- preflight --checkout "$$source" --device h200 --model-config fixtures/models/llama.json -- $(SERVING) && \
	echo "\$$ sgl-graph $$*" && $(DEMO)/sgl-graph "$$@"

test: check pytest ## Lint, types, layers, then all tests that need no GPU

check: lint format types layers

lint: $(TEST_VENV)/ready
	$(TEST)/ruff check .

format: $(TEST_VENV)/ready
	$(TEST)/ruff format --check .

types: $(TEST_VENV)/ready
	$(TEST)/mypy

layers: $(TEST_VENV)/ready
	$(TEST)/lint-imports

pytest: $(TEST_VENV)/ready
	$(TEST)/pytest -m "not gpu and not releases" $(PYTEST_ARGS)

test-releases: $(TEST_VENV)/ready ## Map every supported SGLang release, and hold some launches against their source
	$(TEST)/pytest -m releases -n 2

bench: $(TEST_VENV)/ready ## Time preflight on a real release: cold, warm, one file edited
	$(TEST)/python benchmarks/preflight_speed.py --release $(RELEASE)

clean: ## Remove what the targets above made
	rm -rf $(TEST_VENV) $(DEMO_VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(TEST_VENV)/ready: pyproject.toml
	$(call environment,$(TEST_VENV),[dev])

$(DEMO_VENV)/ready: pyproject.toml
	$(call environment,$(DEMO_VENV),)

# $(1): its folder, $(2): extras. The package is installed in place, so a change of the source needs no new install.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "error: $(PYTHON) is older than Python 3.11; name another with make PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --editable '.$(2)'
	@touch $@
endef
