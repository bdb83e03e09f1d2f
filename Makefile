# The thin front: everything real is in CMakeLists.txt and scripts/.
BUILD ?= build
TYPE ?= RelWithDebInfo
CMAKE_FLAGS ?=
PREFIX ?= /usr/local

.PHONY: all build install demo test bench format lint bundle sanitize races fuzz setup clean help
all: build

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## setup     install what the build needs (Debian packages; nvcc from PyPI if there is none)
setup:
	@scripts/setup

$(BUILD)/build.ninja: CMakeLists.txt | setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(TYPE) $$(scripts/cuda-flags) $(CMAKE_FLAGS)

## build     build/sluice and the tests
build: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD)
	@test ! -e $(BUILD)/src/cli/sluice || ln -sf src/cli/sluice $(BUILD)/sluice

## install   the program, stripped, its manual, completion, systemd unit and examples (PREFIX=/usr/local, DESTDIR=)
install: build
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

## demo      the main job on real traffic, with a report
demo: build
	@scripts/demo

## test      all tests: unit, kernels on the host shim, namespaces with real hosts
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

## lint      clang-format check and clang-tidy
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

clean:
	rm -rf build build-* bundle
