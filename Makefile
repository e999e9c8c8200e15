# The front of the build: `make` builds build/bloomery. It says which packages of Debian or Ubuntu it
# lacks and installs them. The build itself is CMake's (CMakePresets.json).
#
#   make            with CUDA when nvcc is found, else for the CPU
#   make cpu|cuda   one of the two
#   make portable   a binary for other machines: it needs libc alone, and opens CUDA, NCCL and MPI where they are
#   make install    program, manual page and completions under PREFIX (/usr/local); DESTDIR for packages
#   make demo       a small language model from nothing, on the CPU, in under five minutes
#   make test       source checks and fast tests; test-long: everything slow (see tools/test_long)
#   make bench      rates of the kernels on this machine
#   make format     clang-format; make tidy: clang-tidy on files changed since BASE
#
# JOBS=n limits parallel compilation. PRESET=cpu chooses what `make` and `make test` build. Builds
# make the program alone, but those for tests everything; TARGETS="..." says otherwise. DEPS=0
# installs and downloads nothing. UNITY=0 compiles every file alone; by default files of a component
# are compiled together (cmake/batches.cmake), which is quicker unless one file changes often.
# `cmake --preset cpu` by itself compiles them alone.

export PATH := $(PATH):/usr/local/cuda/bin
JOBS ?= $(shell nproc)
PRESET ?= $(if $(shell command -v nvcc),cuda,cpu)
BASE ?= origin/main
TARGETS ?= $(if $(filter asan asan-levels tsan,$@),all,bloomery)
PREFIX ?= /usr/local
BINARY ?= build/bloomery
UNITY ?= 1
# The demo runs the program that `make` built last; where there is none, it builds one for the CPU.
DEMO = $(or $(patsubst %/,%,$(dir $(shell readlink build/bloomery))),cpu)
# Minutes of one core that a first build takes without ccache.
minutes_cpu = 18
minutes_cuda = 40
minutes_portable = 44

.PHONY: all cpu cuda portable asan asan-levels tsan demo test check test-long bench format tidy clean packages headers install uninstall

all: $(PRESET)

cuda portable: headers
cpu cuda portable asan asan-levels tsan: packages
	@$(if $(minutes_$@),test -e build/$@/bloomery || echo "make: a first build takes about $$(( ($(minutes_$@) + $(JOBS) - 1) / $(JOBS) )) minutes on $(JOBS) cores; later ones compile what changed")
	cmake --preset $@ -DBLOOMERY_UNITY=$(UNITY) $(CMAKE_FLAGS) > build/$@.configure.log || { cat build/$@.configure.log; exit 1; }
	cmake --build build/$@ --parallel $(JOBS) --target $(TARGETS)
	@if [ -e build/$@/bloomery ]; then ln -sfn $@/bloomery build/bloomery; fi

packages:
	@mkdir -p build
	@test "$(DEPS)" = 0 || tools/install_packages build

headers:
	@test "$(DEPS)" = 0 || tools/fetch_headers || echo "make: no cuDNN headers; building with our own attention only"

demo: $(DEMO)
	tools/demo

check:
	tools/check_layers
	tools/check_families
	tools/check_headers
	tools/check_sizes
	tools/check_format

test: TARGETS = all
test: check $(PRESET)
	@ctest --test-dir build/$(PRESET) -L fast --output-on-failure --parallel $(JOBS); \
	  status=$$?; tools/skipped_tests build/$(PRESET); exit $$status

test-long: packages headers
	tools/test_long

bench: all
	build/bloomery bench ops

format:
	@test "$(DEPS)" = 0 || tools/install_packages lint
	git ls-files --cached --others --exclude-standard -z -- '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format-14 -i

tidy:
	@test "$(DEPS)" = 0 || tools/install_packages lint
	tools/check_tidy $(BASE)

share = $(DESTDIR)$(PREFIX)/share
pages = $(share)/man/man1/bloomery.1 $(share)/bash-completion/completions/bloomery \
  $(share)/zsh/site-functions/_bloomery $(share)/fish/vendor_completions.d/bloomery.fish

install:
	@test -x $(BINARY) || { echo "make: there is no $(BINARY) to install; run make first" >&2; exit 2; }
	install -D -m 755 -s $(BINARY) $(DESTDIR)$(PREFIX)/bin/bloomery
	mkdir -p $(dir $(pages))
	$(BINARY) man > $(word 1,$(pages))
	$(BINARY) completion bash > $(word 2,$(pages))
	$(BINARY) completion zsh > $(word 3,$(pages))
	$(BINARY) completion fish > $(word 4,$(pages))

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/bloomery $(pages)

clean:
	rm -rf build
