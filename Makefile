# make demo      set up everything, then a guided tour of a real capture, and OpenCL and OpenGL programs that make pictures
# make test      set up the same way, then run the tests         (TESTS=tests/trace for one package)
# make lint      ruff and mypy
# make bench     speed, as ratios to peers and goals            (make bench graphics for one of them)
# make witness   long runs against outside programs
# make fuzz      fuzzing, guided by coverage and under sanitizers           (MINUTES=5)
# make mutate    small faults planted in a package, and whether its tests notice them   (PACKAGE=eu COUNT=100 SEED=1 WORKERS=2)
# make docs      write the generated pages again
# make clean     remove what was built, and .venv
#
# DRIVERS=skip   never install a system package      PYTHON=python3.12   another interpreter

PYTHON  ?= python3
DRIVERS ?=
TESTS   ?= tests
WORKERS ?= auto
MINUTES ?= 5
PACKAGE ?= eu
COUNT   ?= 100
SEED    ?= 1
export DRIVERS

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
BUILT  := pyproject.toml constraints.txt setup.py tools/setup tools/structures.py $(shell find softgen -name '*.[ch]')

.PHONY: demo test lint bench witness fuzz mutate docs setup drivers clean moved
.DEFAULT_GOAL := demo

demo: drivers
	@$(BIN)/python examples/tour.py
	@$(BIN)/python examples/picture.py

test: drivers
	$(BIN)/python -m pytest -q -n $(WORKERS) $(TESTS)

lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy

bench: drivers
	@$(BIN)/python -m bench $(NAMES)

ifeq ($(firstword $(MAKECMDGOALS)),bench)
NAMES := $(wordlist 2,99,$(MAKECMDGOALS))
.PHONY: $(NAMES)
$(NAMES):
	@:
endif

witness: drivers
	HYPOTHESIS_PROFILE=night $(BIN)/python -m pytest -q -n $(WORKERS) -m witness $(TESTS); code=$$?; [ $$code -eq 5 ] && echo "no witness tests yet" || exit $$code

fuzz: setup
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/pip install -q -c constraints.txt atheris || true
	$(BIN)/python tools/fuzz.py --minutes $(MINUTES)

mutate: setup
	@$(BIN)/python -c 'import coverage' 2>/dev/null || $(BIN)/pip install -q -c constraints.txt coverage || true
	$(BIN)/python tools/mutate.py --package $(PACKAGE) --count $(COUNT) --seed $(SEED) $(if $(filter-out auto,$(WORKERS)),--workers $(WORKERS))

docs: setup
	$(BIN)/softgen behaviours --markdown > docs/behaviours.md.new
	mv docs/behaviours.md.new docs/behaviours.md
	$(BIN)/python -m tests.notebooks

# Bytecode as pip writes it for a wheel: where PYTHONDONTWRITEBYTECODE is set, every start would compile all modules again (0.4 s).
setup: $(STAMP)
	@$(BIN)/python -m compileall -q softgen

drivers: setup
	@tools/drivers

# The stamp holds the folder it was made for: a virtual environment that was copied or moved points at the old place.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): moved
endif
$(STAMP): $(BUILT)
	@tools/setup $(PYTHON) $(VENV)
	@echo "$(CURDIR)" > $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find softgen tests bench examples -name __pycache__ -prune -exec rm -rf {} +
	find softgen \( -name '*.so' -o -name '*_h.py' \) -delete
