# Makefile: the commands of this project; `make test` and `make demo` do all of their own set-up.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test bench bench-kernels bench-distributed bench-opencl bench-compile bench-language bench-deploy bench-ve bench-before conformance limits planted fuzz wheels test-versions test-libraries test-aarch64 lint format test-cpp test-sanitizers test-python \
  test-python-async test-python-opencl test-python-inline clean

BIN := .venv/bin
# Drawn once: with ?= each use would be another number, and the order printed not the one that was run.
SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
# A test that waits leaves its core to another process: one more than there are cores.
SPREAD := --numprocesses $(shell expr $$(nproc) + 1) --maxprocesses 4 --dist worksteal
# Folders are listed too, so that a deleted file also counts as a change.
SOURCES := $(shell find include src drivers python cmake tests/drivers/check CMakeLists.txt pyproject.toml \
  -not -name '__pycache__' -not -name '*.pyc' 2>/dev/null)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := 2
export PYTHONDONTWRITEBYTECODE := 1
# One compiler name and paths relative to this folder: the wheel's build then finds in ccache what the release
# build compiled, and a clone elsewhere what this one did.
export CC CXX
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# Without these, ccache keeps nothing that is compiled with a precompiled header: all of src/torch.
export CCACHE_SLOPPINESS := pch_defines,time_macros

help:
	@echo 'make demo    train and run the example models on device="graft" (DEVICE=opencl or ve: there; WHEEL=file: of that wheel)'
	@echo 'make test    lint, torch-free tests (plain and under the sanitizers), pytest; WHOLE=1: each case in each pass'
	@echo 'make bench   measure against torch on the CPU, into docs/measurements/measurements.md and the README'
	@echo 'make bench-kernels  the same, kernel by kernel, into docs/measurements/kernel-speed.md'
	@echo 'make bench-distributed  several processes beside Gloo, into docs/measurements/distributed-speed.md'
	@echo 'make bench-ve  torch.device("ve") beside the device that carries it, into docs/measurements/ve-speed.md'
	@echo 'make bench-before TREE=folder  every row beside another built tree, slower rows looked at three times'
	@echo 'make bench-opencl  the OpenCL driver beside the CPU, into docs/measurements/opencl-speed.md'
	@echo 'make bench-language bench-deploy  language models of a billion parameters, into docs/measurements/language-speed.md'
	@echo 'make bench-deploy  deployed and offloaded models beside the same in process, into docs/measurements/deploy-speed.md'
	@echo 'make bench-compile  compiled models beside torch.compile, into docs/measurements/compile-speed.md'
	@echo 'make conformance  every operator in every dtype, for hours; goes on where it was stopped'
	@echo 'make limits  op_db, modules, optimizers and the demos on drivers that can do little'
	@echo 'make planted  thirty faults in a copy of the sources, one at a time: which tests find each (ONLY=3,7: these)'
	@echo 'make fuzz SECONDS=3600  files of deployed models, changed at random, opened under the address sanitizer'
	@echo 'make wheels  a wheel for each Python of this machine, for every torch at once, into build/wheels'
	@echo 'make test-versions  one wheel with each release of torch: downloads gigabytes, goes on where it was stopped'
	@echo 'make test-libraries  accelerate, transformers, Lightning and others on the device, in an environment of their own'
	@echo 'make test-aarch64  the torch-free tests for 64-bit Arm, cross-compiled and run under qemu'
	@echo 'make lint    formatting, static analysis and the rules of tools/check_design.py'
	@echo 'make setup   environment .venv with Graft installed (the others do this too)'
	@echo 'make format  rewrite the layout of C++ and Python files'

setup: .venv/graft.stamp .venv/test.stamp

# The pack of kernels for this machine's processor alone.
NATIVE := --config-settings=cmake.define.GRAFT_PACK_LEVELS=native

# What running needs, and what testing needs beside it. WHEEL=file: that wheel instead of building one.
NEED := $(if $(WHEEL),wheel,run)
.venv/run.stamp .venv/wheel.stamp: .venv/%.stamp: tools/setup requirements.txt requirements-build.txt constraints.txt
	tools/setup $*
	touch $@

.venv/test.stamp: .venv/run.stamp requirements-dev.txt requirements-opencl.txt conformance/pyproject.toml
	tools/setup test
	touch $@

.venv/graft.stamp: .venv/$(NEED).stamp $(if $(WHEEL),$(WHEEL),$(SOURCES))
	$(BIN)/python -m pip install --no-build-isolation --no-deps $(if $(WHEEL),--force-reinstall $(WHEEL),$(NATIVE) .)
	touch $@

# After a wheel nothing is compiled yet, and the demo starts Python several times.
demo: export PYTHONDONTWRITEBYTECODE :=
# DEVICE=opencl: on that driver's devices instead of the default one. DEVICE=ve: on torch.device("ve"), a Vector Engine
# or the emulated one.
demo: .venv/graft.stamp $(if $(DEVICE),.venv/test.stamp)
	$(if $(filter ve,$(DEVICE)),tools/emulated-ve ,$(if $(DEVICE),GRAFT_DEVICES=$(DEVICE) ))$(BIN)/python examples/demo.py $(if $(filter ve,$(DEVICE)),--device ve)

bench: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/run.py --publish

bench-kernels: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/run.py --kernels --publish

bench-before: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/before.py $(TREE)

bench-opencl: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/run.py --opencl --publish

bench-compile: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/compile.py --publish

bench-language: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/language.py --publish

bench-deploy: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/deploy.py --publish

bench-ve: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/run.py --ve --publish

bench-distributed: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python bench/run.py --distributed --publish

# ARGS: ctest's arguments.
test-aarch64:
	tools/setup aarch64
	tools/test-aarch64 $(ARGS)

# Hours: every entry in every dtype. Interrupted, it goes on where it stopped.
conformance: .venv/graft.stamp .venv/test.stamp
	$(BIN)/torch-conformance --device graft --prove-native --resume --out build/conformance

# Two hours: each driver of tests/drivers/limited.cpp (ONLY=memory_only,small: these).
limits: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python tests/drivers/limits.py $(if $(ONLY),--only $(ONLY))

# What is committed, in build/planted: built once more, then each fault's tests without it and with it.
planted: .venv/graft.stamp .venv/test.stamp
	$(BIN)/python tests/planted/faults.py $(if $(ONLY),--only $(ONLY))

fuzz: .venv/test.stamp
	tools/fuzz $(or $(SECONDS),3600)

# Each release of torch is named exactly: a cap in pip's settings would leave none of the newer ones.
wheels test-versions: export PIP_CONSTRAINT := /dev/null

# PYTHONS='3.11 3.13': of these alone.
wheels: .venv/run.stamp
	$(BIN)/python tools/wheels.py $(if $(PYTHONS),--python $(PYTHONS))

# TORCHES='2.15.0': with these alone.
test-versions: PYTHONS ?= 3.11 3.13
test-versions: wheels
	$(BIN)/python tools/test_versions.py --python $(PYTHONS) $(if $(TORCHES),--torch $(TORCHES))

# Libraries that Graft has integrations for, in build/libraries: what is missing there fails the run.
test-libraries: .venv/graft.stamp .venv/test.stamp
	tools/libraries
	build/libraries/bin/python -m pytest --override-ini=testpaths=tests/python/integrations -k 'integrations or libraries' \
	  tests/python/integrations tests/python/scripts/test_docs.py

lint: .venv/test.stamp
	tools/lint

format: .venv/test.stamp
	git ls-files '*.h' '*.cpp' '*.c' | xargs -r clang-format-14 -i
	$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

test: lint test-cpp test-sanitizers test-python

test-cpp: .venv/test.stamp
	$(if $(WHOLE),WHOLE=1 )tools/test-cpp release $(SEED)

test-sanitizers: .venv/test.stamp
	$(if $(WHOLE),WHOLE=1 )tools/test-cpp asan-ubsan $(SEED)
	tools/test-cpp tsan $(SEED)

# The last lines are pytest's. Tests say by markers what they need (pyproject.toml lists them); a pass takes the files that
# hold its marker, and fails if it finds none. Of what repeats a pass takes its share of the cases, which the seed draws
# (conftest.py); with WHOLE=1 all of them.
share = $(if $(WHOLE),,GRAFT_SHARE=$(1) )
holding = $(shell grep -rlE 'mark\.$(1)\b' tests conformance/tests --include='test_*.py')
test-python: test-python-async test-python-opencl test-python-inline
# glibc overwrites what is freed: who reads it afterwards shall not find it as it was.
test-python-async test-python-opencl test-python-inline: export MALLOC_PERTURB_ := 165

test-python-async: .venv/graft.stamp .venv/test.stamp
	@echo "test order seed: $(SEED) (repeat with: make test SEED=$(SEED))"
	$(call share,1/20)GRAFT_HOST_MODE=async $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED)
	$(call share,1/3)GRAFT_DEVICES=nothing $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) tests/python/ve

# Two devices of PoCL; the host's device beside PoCL's; the kernels of GPUs, which PoCL runs slowly; Intel's runtime where
# it installs (tools/setup).
INTEL_ICD := .venv/intel-opencl/intel.icd
OPENCL := GRAFT_DEVICES=opencl POCL_DEVICES='pthread pthread'
test-python-opencl: .venv/graft.stamp .venv/test.stamp
	$(call share,1/12)$(OPENCL) $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) -m 'any_driver and not host_only' $(call holding,any_driver)
	GRAFT_DEVICES=host:0,opencl:0 $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) -m two_drivers $(call holding,two_drivers)
	$(call share,1/5)$(OPENCL) GRAFT_OPENCL_CLASS=gpu $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) -m gpu_class $(call holding,gpu_class)
	@if [ -e $(INTEL_ICD) ]; then set -x; $(call share,1/2)OCL_ICD_VENDORS=$(CURDIR)/$(INTEL_ICD) GRAFT_DEVICES=opencl \
	  $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) -m any_runtime $(call holding,any_runtime); \
	else echo "Intel's OpenCL runtime is not installed on this machine: its pass is left out"; fi

test-python-inline: .venv/graft.stamp .venv/test.stamp
	$(call share,2/20)GRAFT_HOST_MODE=inline $(BIN)/python -m pytest $(SPREAD) --randomly-seed=$(SEED) -m 'not one_mode' tests/python tests/drivers

clean:
	rm -rf build .venv/graft.stamp
