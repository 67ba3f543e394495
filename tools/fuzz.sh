#!/usr/bin/env bash
# Runs each fuzz function of the module for a bounded time: tools/fuzz.sh [10s] [PATTERN]
# PATTERN, a regular expression, picks functions by name. Stops at the first
# that finds something; the failing input is then in the package's testdata.
# Inputs are made smaller by a few tries at most: by default, a minute goes into
# each one that reaches new code, and none is left to look for more.
set -euo pipefail
cd "$(dirname "$0")/.."

for=${1:-10s}
pattern=${2:-.}
found=0
for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
  dir=$(go list -f '{{.Dir}}' "$pkg")
  for name in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | awk '{ print $2 }' | grep -E "$pattern" || true); do
    found=$((found + 1))
    printf '== %s %s, %s\n' "$pkg" "$name" "$for"
    go test -run='^$' -fuzz="^$name\$" -fuzztime="$for" -fuzzminimizetime=10x "$pkg"
  done
done
[ "$found" -gt 0 ] || { echo "fuzz: no fuzz function matches '$pattern'" >&2; exit 1; }
