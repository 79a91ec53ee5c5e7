#!/bin/bash
# Measures the first minutes of a newcomer: from `git clone` to the first output and to the first
# plot, with nothing in any cache: modules, build, sandboxes, packages.
#
#   bench/firstrun.sh [REPOSITORY]     default: this one
#
# It needs git, Go (or curl, for scripts/go) and Python, and leaves nothing behind.
set -euo pipefail
repository=$(git -C "${1:-$(dirname "$0")/..}" rev-parse --show-toplevel)
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
export GOCACHE=$scratch/gocache GOMODCACHE=$scratch/gomod GOFLAGS=-trimpath CGO_ENABLED=0
export LLMSANDBOX_CACHE_DIR=$scratch/cache LLMSANDBOX_STATE_DIR=$scratch/state PIP_NO_CACHE_DIR=1

start=$EPOCHREALTIME
since() { awk -v from="$start" -v to="$EPOCHREALTIME" -v what="$1" 'BEGIN { printf "%8.1f s  %s\n", to - from, what }'; }

echo "$(nproc) CPUs, load $(cut -d ' ' -f 1 /proc/loadavg), $(date -u +%F)"
git clone -q "$repository" "$scratch/src"
cd "$scratch/src"
since 'git clone'
PATH=$(scripts/go):$PATH
go mod download
since 'modules downloaded'
go build -o "$scratch/llmsandbox" ./cmd/llmsandbox
since 'command built'
"$scratch/llmsandbox" run -l python -c 'print(6 * 7)' >"$scratch/out" 2>"$scratch/err"
grep -qx 42 "$scratch/out"
since 'first output of llmsandbox run'
"$scratch/llmsandbox" run -l python --lib matplotlib --artifacts "$scratch/plots" \
	-c 'import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()' >"$scratch/out" 2>"$scratch/err"
test -s "$scratch/plots/figure-1.png"
since 'first plot, matplotlib installed'
