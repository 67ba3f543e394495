#!/usr/bin/env bash
# Prints the packages whose code shares memory between goroutines: those that
# use sync, atomics or a go statement outside their tests.
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  dir=$(go list -f '{{.Dir}}' "$pkg")
  files=$(go list -f '{{range .GoFiles}}{{.}} {{end}}' "$pkg")
  # shellcheck disable=SC2086  # the file names have no spaces and must split
  if [ -n "$files" ] && (cd "$dir" && grep -qE '"sync(/atomic)?"|errgroup"|^\s*go (func|[a-z]+)' $files); then
    echo "$pkg"
  fi
done
