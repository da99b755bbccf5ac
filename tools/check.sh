#!/usr/bin/env bash
# tools/check.sh STEP [ARGUMENT]: the steps of "make test", each runnable alone.
#
#   unit                  every test of every package, without the race detector
#   race [PACKAGE...]     under the race detector: packages that start goroutines
#   fuzz [DURATION]       every fuzz target for DURATION (default 10s)
#   determinism           the state machine's hashes on 386 (or arm) and arm64
#   sim [FLAG...]         simulations (flags of bench/sim/run; default: 500 seeds)
#   test                  every test once (where goroutines are, under the race
#                         detector), fuzz and determinism; says what was skipped
#
# What a machine lacks is skipped by name, one line each; with CI=true a skip
# fails. Everything here needs Go, git, make and gcc only, plus qemu for arm64.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

# Test binaries say nothing of the version control state, and a checkout owned
# by somebody else must not stop them from being built.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
# The race detector waits a second at the end of every test binary for goroutines
# that are left; the tests fail where one is left (goleak).
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
strict=()
fresh=()
some=()
if [ "${CI:-}" = true ]; then
  strict=(-strict)
  fresh=(-count=1)
fi
skipped=0
# How many packages are tested at a time: some of them wait for processes or for real
# time, and leave a processor to others. What is hurt by company has none (lonely).
packed=$(($(getconf _NPROCESSORS_ONLN) + 1))

say() { printf '== %s\n' "$*"; }

skip() {
  printf 'SKIPPED %s\n' "$*"
  skipped=$((skipped + 1))
}

# runtests is built for this machine, whatever it runs tests for.
runtests() {
  mkdir -p .tools
  GOARCH='' GOOS='' go build -o .tools/runtests ./tools/runtests
  .tools/runtests "${strict[@]}" "${some[@]}" -- "${fresh[@]}" "$@"
}

# files prints every Go file that a person wrote.
files() { find . -name .git -prune -o -name .tools -prune -o -name '*.go' ! -name '*.pb.go' -print; }

unit() {
  say 'unit: every test of every package'
  runtests -timeout 6m ./...
}

# rest runs what race does not.
rest() {
  say 'unit: the packages without goroutines'
  go list ./... | grep -vxF "$(race_packages | sed "s|^\.|$(go list -m)|")" | xargs -d '\n' "$0" run -p "$packed" -vet=off -timeout 6m
}

# A go statement, or a Go method call (sync.WaitGroup, errgroup), in a package's
# own files or tests makes it one that the race detector must see. gofmt makes
# the pattern exact. The command comes first: it takes longest, and runs beside
# the others.
race_packages() {
  files | xargs grep -lE '^[[:space:]]+go (func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(' |
    xargs -n1 dirname | sort -ru | grep -v '^\./tools' || true
}

can_race() { command -v "$(go env CC)" >/dev/null; }

race() {
  local packages=("$@")
  if ! can_race; then
    skip "race: the race detector needs a C compiler ($(go env CC))"
    return
  fi
  if [ $# = 0 ]; then
    mapfile -t packages < <(race_packages)
    packed=$((packed - 1))
  fi
  say "race: ${packages[*]}"
  race_run "${packages[@]}" || race_again
}

# race_run leaves in $log what was printed.
race_run() {
  log=${log:-$(mktemp)}
  CGO_ENABLED=1 runtests -p "$packed" -race -vet=off -timeout 8m "$@" | tee "$log"
}

# race_again tests once more what the race detector spoilt by crashing itself: one of
# its own checks failed, which ends a test binary, and no test did. Anything else is a
# failure.
race_again() {
  local packages
  mapfile -t packages < <(awk -F '\t' '$1 == "FAIL" && NF == 3 { print $2 }' "$log")
  if grep -q -e '--- FAIL' -e 'DATA RACE' "$log" || [ ${#packages[@]} = 0 ] ||
    [ "$(grep -c 'ThreadSanitizer: CHECK failed' "$log")" != ${#packages[@]} ]; then
    return 1
  fi
  say "race: the detector crashed, so once more: ${packages[*]}"
  race_run "${packages[@]}"
}

# idle STEP runs a step with what everything else leaves of the processors.
idle() {
  if command -v chrt >/dev/null; then exec chrt --idle 0 "$0" "$@"; fi
  exec nice -n 19 "$0" "$@"
}

# Packages that bound how long clients of real nodes wait: nothing else runs beside them.
lonely=(./bench ./bench/gateways/real)

# alone races them, one after the other.
alone() {
  local package
  for package in "${lonely[@]}"; do race "$package"; done
}

# beside_lonely fuzzes while these wait for real nodes, which they do most of the time.
# What runs beside them is idle and has been built before: a compiler's writes would
# hold up the nodes' fsyncs.
beside_lonely() {
  fuzz_build
  printf '%s\n' alone 'idle fuzz_built 10s' | xargs -P 2 -L 1 "$0"
}

# fuzz_one PACKAGE:TARGET DURATION fuzzes one target on one worker.
fuzz_one() {
  local package=${1%%:*} target=${1##*:} log status=0 binary cache
  binary=$PWD/$(fuzz_binary "$package")
  cache=$(go env GOCACHE)/fuzz/$(go list -m)${package#.}
  log=$(mktemp)
  # Making an interesting input smaller may take a minute; finding more is worth
  # more.
  (cd "$package" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$2" -test.fuzzcachedir "$cache" \
    -test.fuzzminimizetime 10x -test.parallel 1 -test.timeout 10m) >"$log" 2>&1 || status=$?
  # When the time is up in the middle of an input, the testing package may call
  # that a failure ("context deadline exceeded", and nothing else): golang/go#75804.
  if [ $status = 0 ] || only_out_of_time "$log"; then
    printf 'ok   fuzz %s %s %s\n' "$package" "$target" "$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
    rm -f "$log"
    return
  fi
  printf 'FAIL fuzz %s %s\n' "$package" "$target"
  cat "$log"
  rm -f "$log"
  return 1
}

only_out_of_time() {
  grep -qxE ' +context deadline exceeded' "$1" && ! grep -qE 'Failing input|panic:|_test\.go:' "$1"
}

fuzz_packages() { files | xargs grep -lE '^func Fuzz' | xargs -r -n1 dirname | sort -u; }

fuzz_binary() { printf '.tools/fuzz%s.test' "$(printf %s "${1#.}" | tr / -)"; }

# fuzz_build builds one binary for all targets of a package, which guides the
# search for inputs by what they cover.
fuzz_build() {
  local package
  fuzz_packages | while read -r package; do
    go test -vet=off -fuzz . -c -o "$(fuzz_binary "$package")" "$package" || exit 1
  done
}

# fuzz_targets prints PACKAGE:TARGET of every target that the test binaries list.
fuzz_targets() {
  local package
  fuzz_packages | while read -r package; do
    "$(fuzz_binary "$package")" -test.list '^Fuzz' | grep '^Fuzz' | sed "s|^|$package:|" || exit 1
  done
}

fuzz() {
  fuzz_build
  fuzz_built "$1"
}

fuzz_built() {
  local duration=$1 targets
  targets=$(fuzz_targets)
  say "fuzz: $(printf '%s\n' "$targets" | grep -c . || true) targets, $duration each"
  printf '%s' "$targets" | xargs -r -P "$packed" -I{} "$0" fuzz_one {} "$duration"
}

# can_run_386 tries it.
can_run_386() {
  local dir able=0
  dir=$(mktemp -d)
  printf 'package main\n\nfunc main() {}\n' >"$dir/main.go"
  GOARCH=386 CGO_ENABLED=0 go build -o "$dir/main" "$dir/main.go" && "$dir/main" 2>/dev/null || able=1
  rm -r "$dir"
  return "$able"
}

# determinism runs the tests that compare state hashes with the ones in the
# tree, on machines with other word sizes and other instructions (G9).
determinism() {
  local some=(-some) packages
  mapfile -t packages < <(grep -rlE 'G9' fsm --include='*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')
  if can_run_386; then
    say 'determinism: 386'
    GOARCH=386 CGO_ENABLED=0 runtests -vet=off -run G9 -timeout 5m "${packages[@]}"
  elif command -v qemu-arm-static >/dev/null; then
    # Some kernels and hosts run 64-bit programs only, and Go's for 386 do not run in qemu.
    say 'determinism: arm, with words of 32 bits too, since this machine runs no programs for 386'
    GOARCH=arm CGO_ENABLED=0 runtests -vet=off -run G9 -timeout 10m -exec qemu-arm-static "${packages[@]}"
  else
    skip 'determinism on 32 bits: no programs for 386 run here, and qemu-arm-static is not installed (Debian: qemu-user-static)'
  fi
  say 'determinism: arm64'
  if [ "$(go env GOARCH)" = arm64 ]; then
    echo 'this machine is arm64: unit has run it'
  elif command -v qemu-aarch64-static >/dev/null; then
    GOARCH=arm64 CGO_ENABLED=0 runtests -vet=off -run G9 -timeout 5m -exec qemu-aarch64-static "${packages[@]}"
  else
    skip 'determinism on arm64: qemu-aarch64-static is not installed (Debian: qemu-user-static)'
  fi
}

# sim prints the commit with the seeds: a seed is one run of one commit.
sim() {
  local commit
  commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
  mkdir -p .tools
  go build -o .tools/sim ./bench/sim/run
  .tools/sim -commit "$commit" "$@"
}

finish() {
  if [ "$skipped" -gt 0 ] && [ "${CI:-}" = true ]; then
    echo "$skipped steps were skipped, which CI does not allow"
    exit 1
  fi
}

case "${1:-}" in
unit | race | alone | determinism)
  "$@"
  finish
  ;;
fuzz | fuzz_built) "$1" "${2:-10s}" ;;
fuzz_one) fuzz_one "$2" "$3" ;;
race_packages) "$1" ;;
idle) idle "${@:2}" ;;
sim) sim "${@:2}" ;;
run) runtests "${@:2}" ;;
test)
  # Every test runs once: where goroutines are, under the race detector.
  if can_race; then
    rest
    mapfile -t others < <(race_packages | grep -vxF "$(printf '%s\n' "${lonely[@]}")")
    race "${others[@]}"
    beside_lonely
  else
    unit
    race
    fuzz
  fi
  determinism
  finish
  say "everything passed in $((SECONDS / 60)) min $((SECONDS % 60)) s; $skipped steps skipped"
  ;;
*)
  sed -n '2,13s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
