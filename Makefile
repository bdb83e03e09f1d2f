# The thin front: everything real is in CMakeLists.txt, CMakePresets.json and scripts/.
BUILD ?= build
CMAKE_FLAGS ?=
PREFIX ?= /usr/local

.PHONY: all program benches build install install-program deb test-deb demo test bench format lint bundle sanitize races fuzz nightly setup clean help
all: build

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

configure = cmake -B $(BUILD) $$(scripts/cuda-flags) $(CMAKE_FLAGS) --preset

## setup     install what building and testing need (Debian packages; nvcc from PyPI if there is none)
setup:
	@scripts/setup

## program   build/sluice alone, and what only that needs
program:
	@scripts/setup program
	@test -e $(BUILD)/build.ninja || $(configure) program
	@cmake --build $(BUILD) --target sluice
	@ln -sf src/cli/sluice $(BUILD)/sluice

## benches   the program and its benches, which `sluice bench` runs
benches: program
	@cmake --build $(BUILD) --target sluice-bench

$(BUILD)/build.ninja: | setup
	@$(configure) build

## build     build/sluice and the tests
build: setup $(BUILD)/build.ninja
	@! grep -qs '^SLUICE_TESTS:BOOL=OFF' $(BUILD)/CMakeCache.txt || $(configure) build
	@cmake --build $(BUILD)
	@test ! -e $(BUILD)/src/cli/sluice || ln -sf src/cli/sluice $(BUILD)/sluice

## install   the program and its benches, stripped, its manual, completion, systemd unit and examples (PREFIX=/usr/local, DESTDIR=)
install: benches
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

## install-program  of these only the program, the headers and the CMake package of plug-ins, and the example of one
install-program: program
	@cmake --install $(BUILD) --prefix $(PREFIX) --component element --strip

## deb       build/sluice_*.deb, for this release of Debian or Ubuntu
deb: benches
	@scripts/setup package
	@scripts/make-deb $(BUILD)

## test-deb  installs that package in a fresh system and runs it there (debootstrap, lintian; minutes, the network); with
##           SUITE=bookworm, trixie or noble: makes and tests that release's (half an hour)
test-deb:
	@test -n "$(SUITE)" || $(MAKE) --no-print-directory deb
	@scripts/setup package-test
	@SUITE=$(SUITE) BUILD=$(BUILD) scripts/pytest -q tests/packages

## demo      the main job on real traffic, with a report
demo: program
	@scripts/setup demo
	@scripts/demo

## test      all tests: unit, kernels on the host shim, the program, namespaces with real hosts
test: build
	@scripts/run-tests $(BUILD)

## bench     the benches of this machine
bench: build
	@scripts/run-bench $(BUILD)

## bundle    bundle/: a relocatable folder for another machine
bundle: build
	@scripts/make-bundle $(BUILD)

## format    clang-format over the sources
format:
	@git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

## lint      clang-format check, and clang-tidy over the whole tree (half an hour)
lint: setup $(BUILD)/build.ninja
	@scripts/lint $(BUILD)

## sanitize  tests and kernels under AddressSanitizer and UBSan
sanitize: setup
	@scripts/sanitize

## races     the program between real hosts under ThreadSanitizer
races: setup
	@scripts/races

## fuzz      every libFuzzer target for a short while
fuzz: setup
	@scripts/fuzz

## nightly   what CI has no time for: all of lint, every test under sanitizers, races, long fuzzing, the package, the benches
nightly:
	@scripts/nightly

clean:
	rm -rf build build-* bundle
