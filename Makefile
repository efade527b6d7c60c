# make demo: a walk through a small university.  make serve: the same for psql.  make test: everything that must hold.
# Nothing is installed outside .venv; the only network use is the package install.

PYTHON ?= python3
BIN := .venv/bin
# One more than two cores: every seventh second a test waits for something else than the processor.
WORKERS ?= 3
# Thousands of ledgers wait for their disk: in memory where there are 4 GiB of it to have (bytes are counted by the KiB).
SHARED := $(shell df --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4194304 { print "/dev/shm" }')
# Folders whose tests need no server, no Postgres and no process of their own; the two long random searches stay out.
QUICK := dpsql/tests/plan dpsql/tests/sql dpsql/tests/policy dpsql/tests/mechanisms \
  --ignore=dpsql/tests/sql/test_fuzz_text.py \
  --deselect=dpsql/tests/plan/privacy/test_contradiction.py::test_a_free_zero_is_the_truth

.PHONY: help demo serve gate quick limits mutants mutants-changed test test-wide test-all test-spark tools check bench \
  pictures studio docs constraints clean

help:
	@echo "make demo      make a small university database and ask it some questions"
	@echo "make serve     serve that university to psql on this machine, until Ctrl-C"
	@echo "make gate      what a newcomer does, with an installed dpsql: six kinds of data, serve, psql, report (a minute)"
	@echo "make quick     style, and the tests of plan, sql, policy and mechanisms (under a minute)"
	@echo "make test      check the code and run the tests (minutes)"
	@echo "make limits    how statements end under limits of memory, files and time, on both engines (minutes)"
	@echo "make test-wide what make test leaves out of what takes long; .ci/run runs both (minutes)"
	@echo "make test-all  all of it with the long tests (the audit, the wheel in a clean environment)"
	@echo "make mutants   faults of files that carry a claim, and what they die by (hours; in pieces: FILES=plan/planner.py)"
	@echo "make test-spark  the tests on a real Spark (installs one in .venv/spark: half a gigabyte; needs Java 17 or 21)"
	@echo "make tools     real BI tools and ORMs against a server (installs them in .venv/tools; minutes)"
	@echo "make check     style, types and the one-way imports alone"
	@echo "make bench     the measurements in benchmarks/"
	@echo "make pictures  the pictures of README and manual, by the code of the owner's report"
	@echo "make studio    the editor and charts of dpsql studio, bundled anew (npm; asks its registry)"
	@echo "make docs      the manual as a site, in build/site (installs its generator; half a minute)"
	@echo "make constraints  pin what is installed, with hashes, in dpsql/constraints.txt (asks the package index)"
	@echo "make clean     remove .venv and what the tools left behind"

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpsql needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

# Node's client, and what looks at the studio for who cannot see it: tests go without where they cannot be had.
.venv/node: .venv/ready
	-if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund \
	  --fetch-retries=0 --fetch-timeout=20000 --prefix $@ pg axe-core@4.14.1; fi
	mkdir -p $@

demo: .venv/ready
	$(BIN)/dpsql demo demo

serve: .venv/ready
	@$(BIN)/dpsql demo --serve demo

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -q -n $(WORKERS) -m "not long" $(QUICK)

# Installs dpsql by the README's commands in a temporary folder, without extras: the one job that asks the package index.
gate: .venv/ready
	$(BIN)/python -m dpsql.tests.gate

# Neighbours end alike where memory, files and time are short: real limits, on DuckDB and on a Postgres of its own.
limits: .venv/ready
	$(BIN)/python -m dpsql.tests.limits

# Some hundred processes import the same modules: each is compiled once, whatever is said of the user's own programs.
quick test test-wide test-all: export PYTHONDONTWRITEBYTECODE :=
quick test test-wide test-all: export PYTEST_DEBUG_TEMPROOT := $(SHARED)

test: check .venv/node
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not long and not wide"

test-wide: .venv/node
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "wide and not long"

test-all: check .venv/node
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# Faults derived from the code (soundness.md 5.5). Results are kept in .mutants: what was run is not run again.
mutants: .venv/ready
	$(BIN)/python -m dpsql.tests.mutants $(FILES)

# Of files that differ from where this branch left the upstream main, if it is known.
mutants-changed: .venv/ready
	$(BIN)/python -m dpsql.tests.mutants --changed --minutes 10 --each 10

# A Spark of its own, for its jars: what Python's side of it needs is not installed.
.venv/spark/ready: .venv/ready Makefile
	$(PYTHON) -m venv .venv/spark
	.venv/spark/bin/pip install --quiet --disable-pip-version-check --no-deps "pyspark[connect]==4.3.0"
	touch $@

test-spark: .venv/spark/ready
	DPSQL_REQUIRE_SPARK=1 $(BIN)/pytest -q -m "spark and not long"

# Tools that analysts hold, in environments of their own: what they need is nothing of dpsql's. Debian's are asked
# where they are installed: r-cran-dbplyr r-cran-ggplot2 r-cran-rpostgresql, golang-go golang-github-jackc-pgx-v4-dev,
# libpostgresql-jdbc-java, odbc-postgresql.
.venv/tools/ready: .venv/ready Makefile
	$(PYTHON) -m venv .venv/tools/python
	.venv/tools/python/bin/pip install --quiet --disable-pip-version-check "django<6" "great_expectations<2" \
	  "ibis-framework[postgres]<13" ipython jupysql "pandas<4" psycopg2-binary "sqlalchemy>=2,<3"
	$(PYTHON) -m venv .venv/tools/dbt
	.venv/tools/dbt/bin/pip install --quiet --disable-pip-version-check "dbt-core~=1.9.0" "dbt-postgres~=1.9.0"
	$(PYTHON) -m venv .venv/tools/frames
	.venv/tools/frames/bin/pip install --quiet --disable-pip-version-check adbc-driver-postgresql asyncpg connectorx \
	  "pandas<4" pg8000 polars "psycopg[binary]" psycopg2-binary pyarrow pyodbc "sqlalchemy[asyncio]>=2,<3" sqlmesh
	$(PYTHON) -m venv .venv/tools/superset
	.venv/tools/superset/bin/pip install --quiet --disable-pip-version-check "apache-superset>=6.1,<6.2" cachetools \
	  "flask-caching<2.4" psycopg2-binary rich
	$(PYTHON) -m venv .venv/tools/charts
	.venv/tools/charts/bin/pip install --quiet --disable-pip-version-check altair kaleido pandas plotly "psycopg[binary]" \
	  vl-convert-python
	-if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix .venv/tools/node \
	  drizzle-orm knex kysely pg pg-cursor pg-hstore pg-promise pg-query-stream postgres reflect-metadata sequelize \
	  typeorm; fi
	touch $@

tools: .venv/tools/ready
	$(BIN)/python -m dpsql.tests.tools .venv/tools

bench: .venv/ready
	$(BIN)/python -m benchmarks

pictures: .venv/ready
	$(BIN)/python -m dpsql.tests.support.make_pictures

# What is pinned in dpsql/tests/support/studio_bundle, as one file: a test holds its sha256.
studio: .venv/ready
	$(BIN)/python -m dpsql.tests.support.make_studio
	$(BIN)/python -m dpsql.tests.support.make_studio_picture

.venv/docs-ready: .venv/ready pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	touch $@

docs: .venv/docs-ready
	$(BIN)/python -m dpsql.tests.support.make_site

constraints: .venv/ready
	$(BIN)/python -m dpsql.tests.support.make_constraints

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .mutants
