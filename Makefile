# Each target is one command, which first makes what it needs unless that is there already.

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# Runs one command at a time for a folder, if the system has `flock`; other jobs of make go on.
IN_TURN = $(if $(shell command -v flock),flock $(1))
PIP := $(call IN_TURN,$(VENV)) $(BIN)/python -m pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/stamps
# Up to 0.3, the distribution was called `holdfast`. Removed later, it would take these files with it, as
# would a `holdfast-bayeux` from before the client was a distribution of its own.
FORGET_EARLIER_NAME = ! ls -d $(VENV)/lib/python3*/site-packages/holdfast-*.dist-info >/dev/null 2>&1 || \
    $(PIP) uninstall --yes holdfast
FORGET_WHOLE = ls -d $(VENV)/lib/python3*/site-packages/holdfast_bayeux_client-*.dist-info >/dev/null 2>&1 || \
    $(PIP) uninstall --yes holdfast-bayeux 2>/dev/null
INSTALLED = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
SOURCES := $(shell find app extensions pipeline static \( -name node_modules -o -name __pycache__ \) -prune \
    -o -type f -print)
DOCS := $(if $(wildcard docs),$(shell find docs deploy -name __pycache__ -prune -o -type f -print) CHANGELOG.md CONTRIBUTING.md SECURITY.md)

# Tests start hundreds of processes, which would compile all their modules again.
unexport PYTHONDONTWRITEBYTECODE

PEERS := bench/load/peers
# Folders with packages from npm that only tests and the bench use.
NPM := tests/clients tests/clients/conformance $(PEERS)
# Folders with CometD for Java: a server, and clients.
JAVA := $(PEERS)/cometd-jetty tests/clients/java

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/holdfast
# Clones share what was compiled, in a folder for each set of tools, which compile differently.
TOOLS = $(shell { cat requirements-build.lock hatch_build.py; $(PYTHON) -VV; cc --version; } 2>&1 | cksum | cut -d ' ' -f 1)
COMPILE_HOME ?= $(CACHE)/compiled-$(TOOLS)
# So do they share what mypy knows of modules that have not changed.
CHECK_HOME ?= $(CACHE)/checked
BUILD = mkdir -p $(COMPILE_HOME) && \
    COMPILE_HOME=$(COMPILE_HOME) $(call IN_TURN,$(COMPILE_HOME)) $(BIN)/hatchling build
# The client is a distribution of its own, without anything to compile.
BUILD_CLIENT = cd client && $(abspath $(BIN))/hatchling build
# What the bench builds and installs stays outside the tree.
BENCH_HOME ?= $(CACHE)/bench
SET ?= standard
REPS ?= 3
ONLY ?=

# Statements and branches of the core that tests must reach, in per cent.
CORE_COVERAGE ?= 95

UV_VERSION := 0.13.8
PIP_AUDIT_VERSION := 2.10.1
CYCLONEDX_VERSION := 7.5.0
# Releases younger than this are left to others to try.
COOL_DOWN := 7 days

# Not by the name MAKE: `make --dry-run` would run those lines.
AGAIN = $(MAKE) --no-print-directory

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make the environment; afterwards .venv/bin/holdfast works
	@$(MAKE) --no-print-directory --jobs 2 setup-pages $(STAMPS)/holdfast

# Serves as soon as it can: while the installed server is missing or older than the sources, the sources
# are served, and make installs the server behind them, for the next start. It finishes even if the
# server stops before.
.PHONY: run
run: ## serve on 127.0.0.1:8080; more flags by ARGS="--port 9090"
	@$(AGAIN) --silent --jobs 2 setup-pages $(STAMPS)/packages
	@$(FORGET_EARLIER_NAME)
	@if $(AGAIN) --question $(STAMPS)/holdfast >/dev/null 2>&1; then exec $(BIN)/holdfast serve $(ARGS); fi; \
	echo 'serving the sources, interpreted; make builds holdfast behind the server, for the next start'; \
	[ -e $(BIN)/holdfast ] || $(PIP) install --no-index --no-deps --no-build-isolation --editable . || exit; \
	{ nice $(AGAIN) $(STAMPS)/holdfast && echo 'holdfast is installed: the next start uses it'; } </dev/null & \
	exec $(BIN)/python -m holdfast serve $(ARGS)

.PHONY: test
test: ## linters, types, import contracts, all tests, coverage of the core
	$(MAKE) --no-print-directory BESIDE='check compiled' groups

.PHONY: check
check: $(STAMPS)/pipeline ## linters, types and import contracts only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@mkdir -p $(CHECK_HOME)
	$(POLITE) $(call IN_TURN,$(CHECK_HOME)) $(BIN)/mypy --cache-dir $(CHECK_HOME)
	$(BIN)/lint-imports

# Groups of tests, each a process of its own.
PIPELINE := $(addprefix tests/,pipeline unit/pipeline)
# Several Javas of its own, for minutes.
CLUSTER := tests/pipeline/test_cluster.py
STORE := $(addprefix tests/,store integration)
# Their coverage is not measured: that would slow their servers, and other tests run the same lines.
ATTACKS := $(addprefix tests/,abuse fuzz)
CHAOS := tests/chaos
# These wait most of the time, so they run beside the rest: for leases and Sentinels, or for workers.
CHAOS_PAIRS := $(CHAOS)/test_standby.py
CHAOS_MACHINES := $(addprefix $(CHAOS)/,test_two_machines.py test_hosts.py \
    test_hosts_in_trouble.py test_host_moves.py test_hour.py test_proxies_of_hosts.py test_two_forms.py)
CHAOS_WORKERS := $(wildcard $(CHAOS)/test_workers*.py) \
    $(patsubst %,$(CHAOS)/test_%.py,frozen_workers plain_beside_sick resharding)
CLIENTS := $(addprefix tests/,clients conversations)
SEEDS := tests/simulation
PAGES := tests/browser
# Tests of what a release uploads.
ARTEFACTS := tests/artefacts
# Tests in no other group, without the unit tests.
REST = tests $(patsubst %,--ignore %,tests/unit $(PIPELINE) $(ATTACKS) $(CHAOS) $(CLIENTS) $(PAGES) $(SEEDS) \
    $(ARTEFACTS))
# Seven at a time: first those that wait for least, then the longest, so that the end keeps both
# cores busy. Most of the groups wait most of the time. The others compute, at a lower priority, because
# some tests measure waits. CONTRIBUTING.md says how long they may take.
GROUPS := test-seeds cover-units test-slow-web test-rest test-chaos test-chaos-machines test-chaos-pairs \
    test-chaos-workers test-tables test-spark test-clients test-pages test-slow-store test-attacks test-artefacts \
    test-store test-slow test-cluster
POLITE := nice -n 3
# Without slow tests, such as state machines, and with shorter searches.
QUICK := -m 'not slow or interpreted' --hypothesis-profile quick
TEST := $(BIN)/python -m pytest
SERVE_INSTALLED := TEST_INSTALLED=1
COVER := $(BIN)/coverage run -m pytest
# Traced, Python takes about twice its time. Tests of units alone reach the core, so those of other
# groups are traced where the coverage of everything is asked for.
TRACED := $(TEST)
COMPILED = $(TEST) --override-ini 'pythonpath=$(INSTALLED) .'

.PHONY: cover
cover: ## all tests, and the coverage of everything; ARGS go to each pytest
	$(AGAIN) groups TRACED='$(COVER)'
	$(BIN)/coverage report

.PHONY: groups
groups:
	@$(AGAIN) docs # before the server is installed, whose files they are
	@rm -f .coverage .coverage.*
	$(MAKE) --no-print-directory --jobs 7 --output-sync $(BESIDE) $(GROUPS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='app/bayeux/**,app/delivery/**' --fail-under=$(CORE_COVERAGE)

.PHONY: $(GROUPS)
# Unit tests begin at once, and seeds when there is a server whose version theirs can say; all others
# wait until the clients are installed, too.
ALONE := cover-units test-seeds
cover-units: $(STAMPS)/dev
test-seeds: $(STAMPS)/dev $(STAMPS)/holdfast
$(filter-out $(ALONE),$(GROUPS)): $(STAMPS)/pipeline $(STAMPS)/holdfast setup-clients
test-pages test-rest test-artefacts test-chaos-machines: setup-debian
test-artefacts: setup-artefacts
test-chaos-machines: setup-caddy
test-slow-store: setup-debian setup-prometheus setup-collector setup-cluster-tools
test-attacks:
	$(SERVE_INSTALLED) $(TEST) $(ATTACKS) $(ARGS)
test-chaos:
	$(SERVE_INSTALLED) $(TEST) $(CHAOS) \
	    $(patsubst %,--ignore %,$(CHAOS_PAIRS) $(CHAOS_MACHINES) $(CHAOS_WORKERS)) $(ARGS)
test-chaos-pairs:
	$(SERVE_INSTALLED) $(TEST) $(CHAOS_PAIRS) $(ARGS)
test-chaos-machines:
	$(SERVE_INSTALLED) $(TEST) $(CHAOS_MACHINES) $(ARGS)
test-chaos-workers:
	$(SERVE_INSTALLED) $(TEST) $(CHAOS_WORKERS) $(ARGS)
test-clients:
	$(SERVE_INSTALLED) $(TEST) $(CLIENTS) $(ARGS)
test-artefacts:
	$(POLITE) $(TEST) $(ARTEFACTS) $(ARGS)
test-pages:
	$(SERVE_INSTALLED) $(TEST) $(PAGES) $(ARGS)
# With one Spark for all of its tests; those of the pipeline that need none run beside them.
test-spark:
	$(SERVE_INSTALLED) $(POLITE) $(TRACED) tests/pipeline -m spark $(ARGS)
test-tables:
	$(SERVE_INSTALLED) $(POLITE) $(TRACED) $(PIPELINE) --ignore $(CLUSTER) -m 'not spark' $(ARGS)
# Another process asks the cluster, so there would be nothing to trace.
test-cluster:
	$(SERVE_INSTALLED) $(POLITE) $(TEST) $(CLUSTER) $(ARGS)
test-store:
	$(SERVE_INSTALLED) $(TRACED) $(STORE) -m 'not slow or interpreted' $(ARGS)
cover-units:
	$(POLITE) $(COVER) tests/unit --ignore tests/unit/pipeline $(QUICK) $(ARGS)
test-rest:
	$(SERVE_INSTALLED) $(TRACED) $(REST) $(patsubst %,--ignore %,$(STORE)) -m 'not slow' $(ARGS)
# Not traced, which would make searches take several times as long; `compiled` runs those of units. They
# wait so often that fewer processes would be the last by minutes.
SLOW = $(SERVE_INSTALLED) $(POLITE) $(COMPILED) -m 'slow and not interpreted'
test-slow:
	$(SLOW) $(REST) $(patsubst %,--ignore %,$(STORE) tests/web) $(ARGS)
test-slow-web:
	$(SLOW) tests/web $(ARGS)
test-slow-store:
	$(SLOW) $(STORE) $(ARGS)

# Seeds are played with the sources. Worlds begin and end sooner where little else is imported.
test-seeds:
	$(POLITE) $(TEST) $(SEEDS) $(ARGS)

# What a night of one core plays, with its results; the same command goes on where it was stopped.
SIMULATED ?= $(CACHE)/simulated-$(shell git rev-parse --short HEAD 2>/dev/null)
.PHONY: test-simulation
test-simulation: $(STAMPS)/dev ## 3,000 seeds and all broken builds in a night; ARGS="--minutes 60" for a part
	nice $(BIN)/python -m tests.simulation.night --home $(SIMULATED) $(ARGS)

.PHONY: unit
unit: $(STAMPS)/pipeline ## the unit tests but for the slow ones, in seconds
	@$(MAKE) --no-print-directory --jobs 2 --output-sync unit-bayeux unit-rest

.PHONY: unit-bayeux unit-rest
unit-bayeux:
	$(TEST) -p no:aiohttp tests/unit/bayeux $(QUICK) $(ARGS)
unit-rest:
	$(TEST) tests/unit --ignore tests/unit/bayeux $(QUICK) $(ARGS)

.PHONY: compiled
compiled: $(STAMPS)/dev $(STAMPS)/holdfast ## the unit tests, slow ones too, of the core as it was installed
	$(POLITE) $(COMPILED) tests/unit --ignore tests/unit/pipeline -m 'not interpreted'

.PHONY: fmt
fmt: setup-test ## format, and repair what the linter can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: setup-test
setup-test: setup-pages docs # before the server is installed, whose files they are
	@$(AGAIN) $(STAMPS)/dev $(STAMPS)/holdfast $(STAMPS)/pipeline

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	    { echo 'The venv module is incomplete: install python3-venv' >&2; exit 1; }
	@echo 'making the environment $(VENV)'
	@$(PYTHON) -m venv --clear $(VENV)

# The pip that Python brings takes twice the time. Hatchling lets it install the sources as they are.
$(STAMPS)/pip: requirements-install.lock | $(BIN)/python
	@echo 'installing pip'
	@$(PIP) install --no-compile --require-hashes -r requirements-install.lock
	@mkdir -p $(@D) && touch $@

$(STAMPS)/packages: requirements.lock $(STAMPS)/pip
	@echo 'installing the packages of the server'
	@$(PIP) install --no-compile --require-hashes -r requirements.lock
	@mkdir -p $(@D) && touch $@

$(STAMPS)/run: requirements-build.lock $(STAMPS)/packages
	@echo 'installing what builds the server'
	@$(PIP) install --no-compile --require-hashes -r requirements-build.lock
	@mkdir -p $(@D) && touch $@

$(STAMPS)/dev: requirements-dev.lock $(STAMPS)/run
	@echo 'installing what tests and checks it'
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@mkdir -p $(@D) && touch $@

# Spark is half of the download, which goes on while the core is compiled. It comes without a wheel; the
# tools of the other locks make one, uncompressed, because it is unpacked at once.
$(STAMPS)/pipeline: requirements-pipeline.lock $(STAMPS)/dev
	@printf '[bdist_wheel]\ncompression = stored\n' >$(VENV)/wheel.cfg
	@echo 'installing Spark, and what else the pipeline needs'
	@DIST_EXTRA_CONFIG="$(CURDIR)/$(VENV)/wheel.cfg" \
	    $(PIP) install --no-compile --no-build-isolation --require-hashes -r requirements-pipeline.lock
	@mkdir -p $(@D) && touch $@

# The environment gets a copy, with a compiled core where there is a compiler. `python -m holdfast` in
# this folder runs the sources as they are.
$(STAMPS)/holdfast: pyproject.toml client/pyproject.toml hatch_build.py hatch_metadata.py $(SOURCES) $(STAMPS)/run | setup-pages
	@echo 'building holdfast'
	@rm -rf $(VENV)/wheel
	@$(FORGET_EARLIER_NAME)
	@$(FORGET_WHOLE)
	@$(BUILD) -t wheel -d $(VENV)/wheel >/dev/null
	@$(BUILD_CLIENT) -t wheel -d $(abspath $(VENV))/wheel >/dev/null
	@$(PIP) install --no-index --no-deps --force-reinstall $(VENV)/wheel/*.whl
	@mkdir -p $(@D) && touch $@

# The wheel of pure Python is for machines that the compiled one does not fit. Without a compiler, there is no other.
DIST ?= dist
.PHONY: dist
dist: docs ## what a release uploads, in dist/: for pip, pure and compiled, and for npm
	@$(AGAIN) $(STAMPS)/holdfast
	@rm -f $(DIST)/holdfast*
	@mkdir -p $(DIST)
	cp $(VENV)/wheel/*.whl $(DIST)
	$(BIN)/hatchling build -t sdist -d $(DIST)
	COMPILE_CORE=never $(BIN)/hatchling build -t wheel -d $(DIST)
	$(BUILD_CLIENT) -t sdist -d $(abspath $(DIST))
	@if command -v npm >/dev/null; then npm pack ./static/js --pack-destination $(DIST) --loglevel=error; \
	else echo 'npm is missing: no package for npm' >&2; fi

.PHONY: chart
chart: setup-cluster-tools ## the chart for Helm, in dist/
	$(BIN)/helm package deploy/chart --destination dist

.PHONY: release
release: $(STAMPS)/pipeline ## try a release in a clone of its own, VERSION=1.2.3; ARGS=--commit makes it
	@$(BIN)/python -m deploy.release $(VERSION) $(ARGS)

# Parts of a release: what the sources say of themselves, and the tests of its files.
.PHONY: describe check-release
describe: $(STAMPS)/dev $(STAMPS)/holdfast
	$(BIN)/python -m docs.generate
	$(BIN)/python -m tests.store.stored_scene $(VERSION)
check-release: $(STAMPS)/pipeline setup-pages setup-cluster-tools
	$(TEST) tests/project tests/store/test_layout.py tests/integration/test_distribution.py tests/integration/test_charts.py

.PHONY: docs
docs: static/docs/policy.txt ## the site of the documentation, which the server shows at /docs/

static/docs/policy.txt: $(DOCS) $(STAMPS)/docs
	@$(BIN)/python -m docs.build

$(STAMPS)/docs: requirements-docs.lock $(STAMPS)/pip
	@echo 'installing what builds the documentation'
	@$(PIP) install --no-compile --require-hashes -r requirements-docs.lock
	@mkdir -p $(@D) && touch $@

# The files that pages take from npm, with compressed copies beside them, which the server prefers.
.PHONY: setup-pages
setup-pages:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory --silent static/cometd/.installed; \
	else echo 'node and npm are missing, so the page at /chat/ lacks cometd.js: install Node, then run make setup-pages' >&2; fi

static/cometd/.installed: static/npm/package-lock.json
	@echo 'installing cometd.js for the pages'
	@npm ci --prefix static/npm --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
	@mkdir -p $(@D) && cp static/npm/node_modules/cometd/*.js static/npm/node_modules/cometd/LICENSE $(@D)
	@gzip -9fk $(@D)/*.js && touch $@

# What tests install in empty environments: what a release uploads, and the locked packages with it.
.PHONY: setup-artefacts
# One make alone may build the server: another one beside it would replace what tests run already.
setup-artefacts: docs $(STAMPS)/holdfast
	@$(AGAIN) $(STAMPS)/artefacts
$(STAMPS)/artefacts: $(STAMPS)/holdfast requirements.lock requirements-install.lock
	@echo 'building what a release uploads'
	@$(AGAIN) --silent dist DIST=$(VENV)/artefacts >/dev/null
	@rm -rf $(VENV)/packages
	@$(PIP) download --require-hashes --only-binary :all: -d $(VENV)/packages \
	    -r requirements.lock -r requirements-install.lock
	@mkdir -p $(@D) && touch $@

# Other projects' clients, to test our server, and their servers, to test our client.
.PHONY: setup-clients
setup-clients:
	@if [ ! -f tests/clients/package-lock.json ]; then :; \
	elif command -v npm >/dev/null; then \
	    $(MAKE) --no-print-directory $(addsuffix /node_modules/.installed,$(NPM)); \
	else echo 'node and npm are missing: no test with the real JavaScript clients' >&2; fi
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then \
	    $(MAKE) --no-print-directory $(addsuffix /target/.installed,$(JAVA)); \
	else echo 'mvn and a JDK are missing: no test with CometD for Java' >&2; fi

$(addsuffix /node_modules/.installed,$(NPM)): %/node_modules/.installed: %/package-lock.json
	npm ci --prefix $* --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

$(addsuffix /target/.installed,$(JAVA)): %/target/.installed: %/pom.xml
	mvn --quiet --batch-mode --strict-checksums --file $< dependency:copy-dependencies
	javac -cp '$(@D)/lib/*' -d $(@D)/classes $(<D)/*.java
	@touch $@

$(PEERS)/cometd-jetty/target/.installed: $(wildcard $(PEERS)/cometd-jetty/*.java)
tests/clients/java/target/.installed: $(wildcard tests/clients/java/*.java)

# A browser, what formats the manual pages, what leads clients to one of two servers, and what makes a root for the image.
.PHONY: setup-debian
setup-debian:
	@if command -v chromium-headless-shell && command -v groff && command -v haproxy && command -v nginx && \
	    command -v debootstrap; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get; then \
	    { apt-get -o DPkg::Lock::Timeout=300 update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qq --no-install-recommends \
	    chromium-headless-shell debootstrap groff-base haproxy nginx-light; } || command -v chromium; \
	elif ! command -v chromium; then echo 'chromium is missing: no test in a browser' >&2; fi >/dev/null

# Prometheus and its tool, which read metrics and rules; and Caddy. Debian's packages would start services, so only their
# programs are taken.
TAKEN = @if [ -x $(BIN)/$(firstword $(2)) ]; then :; \
	elif command -v apt-get && command -v dpkg-deb; then \
	    home=$$(mktemp -d) && { cd $$home && { apt-get -o APT::Sandbox::User=root download $(1) || \
	    { apt-get -o DPkg::Lock::Timeout=300 update -qq && \
	    apt-get -o APT::Sandbox::User=root download $(1); }; } && \
	    dpkg-deb --extract $(1)_*.deb . && \
	    mv $(addprefix usr/bin/,$(2)) $(CURDIR)/$(BIN); }; rm -rf $$home; \
	else echo 'apt-get is missing: no test with $(1)' >&2; fi >/dev/null
.PHONY: setup-prometheus setup-caddy
setup-prometheus: | $(BIN)/python
	$(call TAKEN,prometheus,promtool prometheus)
setup-caddy: | $(BIN)/python
	$(call TAKEN,caddy,caddy)

# Programs of Go are built from their modules: once for all clones, and unoptimised, which takes a quarter less time. Links in
# the environment lead to them.
BUILT_BY_GO = @if command -v go >/dev/null && ( \
	    home=$(CACHE)/$(notdir $(1))-$$({ cat $(1)/*; go version; } | cksum | cut -d ' ' -f 1); \
	    for each in $(2); do name=$$home/$${each%%=*}; [ -x $$name ] || $(POLITE) $(call IN_TURN,$(1)) \
	    go build -C $(1) -gcflags='all=-N -l' -ldflags='-s -w' -o $$name $${each\#*=} || exit; \
	    ln -sf $$name $(BIN); done ); then :; \
	else echo 'go is missing or too old: no test with $(3)' >&2; fi
KUBERNETES := helm=helm.sh/helm/v4/cmd/helm kustomize=sigs.k8s.io/kustomize/kustomize/v5
# What reads the files of `docker compose` for it.
COMPOSE := compose-spec=github.com/compose-spec/compose-go/v2/cmd

.PHONY: setup-collector setup-cluster-tools
setup-collector: | $(BIN)/python
	$(call BUILT_BY_GO,tests/integration/collector,otelcol=.,the collector of OpenTelemetry)
setup-cluster-tools: | $(BIN)/python
	$(call BUILT_BY_GO,tests/integration/cluster_tools,$(KUBERNETES) $(COMPOSE),charts or compose files)

.PHONY: screenshots
screenshots: setup-test setup-pages setup-debian ## pictures of every page, light and dark, desk and phone; OUT=dir
	$(BIN)/python -m tests.browser.shots $(or $(OUT),screenshots)

.PHONY: bench
bench: setup $(BENCH_HOME)/bayeux_load $(PEERS)/node_modules/.installed ## measure beside the peers; SET=quick REPS=1 ONLY=holdfast,faye
	$(BIN)/python -m bench.run --set $(SET) --reps $(REPS) --only "$(ONLY)" \
	    --loader $(BENCH_HOME)/bayeux_load --out $(BENCH_HOME)/results $(ARGS)

$(BENCH_HOME)/bayeux_load: bench/load/bayeux_load.c bench/load/Makefile
	$(MAKE) -C bench/load BUILD_DIR=$(BENCH_HOME)

.PHONY: lock
lock: ## compute the lock files anew (needs the network)
	@set -e; home=$$(mktemp -d); trap 'rm -rf "$$home"' EXIT; \
	$(PYTHON) -m venv $$home/venv; \
	$$home/venv/bin/python -m pip --disable-pip-version-check -q install uv==$(UV_VERSION); \
	compile() { $$home/venv/bin/uv pip compile --quiet --upgrade \
	    --python-version 3.11 --exclude-newer '$(COOL_DOWN)' --generate-hashes --no-annotate --no-emit-index-url --no-emit-package holdfast-bayeux-client \
	    --custom-compile-command 'make lock' "$$@"; }; \
	compile pyproject.toml -o requirements.lock; \
	compile pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock; \
	compile pyproject.toml --extra pipeline -c requirements-dev.lock -o requirements-pipeline.lock; \
	compile --group build -c requirements-dev.lock -o requirements-build.lock; \
	compile --group install -c requirements-dev.lock -o requirements-install.lock; \
	compile --group docs -c requirements-dev.lock -o requirements-docs.lock

# Audits all packages of the server, the tests and the build. A package that the index of
# vulnerabilities does not know is an error: it was not audited.
NOT_AUDITED := audit: failed. If a vulnerability is listed above, update its package. If a package was not found or \
    an endpoint returned an error, this network does not reach the data of PyPI and npm: repeat on one that does.

.PHONY: audit
audit: sbom ## look for known vulnerabilities, after sbom (needs the network)
	@set -e; home=$$(mktemp -d); \
	trap '[ $$? = 0 ] || echo "$(NOT_AUDITED)" >&2; rm -rf "$$home"' EXIT; \
	$(PYTHON) -m venv $$home/venv; \
	$$home/venv/bin/python -m pip --disable-pip-version-check -q install pip-audit==$(PIP_AUDIT_VERSION); \
	failed=0; \
	for lock in requirements*.lock; do \
	    $$home/venv/bin/pip-audit --strict --require-hashes --disable-pip -r $$lock || failed=1; done; \
	for lock in static/npm $(NPM); do \
	    npm audit --prefix $$lock --package-lock-only || failed=1; done; \
	exit $$failed

.PHONY: sbom
sbom: ## list all parts of the server and its pages, as CycloneDX, in dist/*.cdx.json (needs the network)
	@set -e; home=$$(mktemp -d); mkdir -p dist; trap 'rm -rf "$$home"' EXIT; \
	$(PYTHON) -m venv $$home/venv; \
	$$home/venv/bin/python -m pip --disable-pip-version-check -q install cyclonedx-bom==$(CYCLONEDX_VERSION); \
	$$home/venv/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
	    -o dist/holdfast.cdx.json requirements.lock; \
	(cd static/npm && npm sbom --sbom-format cyclonedx --package-lock-only) >dist/pages.cdx.json

.PHONY: clean
clean: ## remove everything that make made here
	rm -rf $(VENV) dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
	    .mypy_cache .pytest_cache .ruff_cache $(addsuffix /node_modules,static/npm $(NPM)) \
	    $(addsuffix /target,$(JAVA)) static/cometd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
