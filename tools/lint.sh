#!/usr/bin/env bash
# Runs every linter over the module, says how each went, and fails if one did.
# The linters are pinned in tools/go.mod, which is outside our module graph.
set -u
cd "$(dirname "$0")/.." || exit 2

failed=()
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT

# step NAME COMMAND... runs one linter and shows its output only if it complains.
step() {
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$out" 2>&1; then
    printf 'ok    %-12s %3ds\n' "$name" $((SECONDS - start))
  else
    printf 'FAIL  %-12s %3ds\n' "$name" $((SECONDS - start))
    sed 's/^/      /' "$out"
    failed+=("$name")
  fi
}

formatted() {
  local files
  files=$(gofmt -l .) || return
  [ -z "$files" ] || { printf 'not formatted, run gofmt -w on:\n%s\n' "$files"; return 1; }
}

# The standard library is judged at the version that releases are built with:
# the toolchain line of go.mod.
vulnerable() {
  local toolchain
  toolchain=$(awk '$1 == "toolchain" { print $2 }' go.mod)
  GOTOOLCHAIN=$toolchain go -C tools run ./vulncheck -dir .. -allow vuln-allow.txt -db vulndb.version
}

scripts() { shellcheck .ci/run tools/*.sh; }

step gofmt formatted
step vet go vet ./...
step "go fix" go fix -diff ./...
step staticcheck go tool -modfile=tools/go.mod staticcheck ./...
step "tools' tests" go -C tools test ./...
step "vet interop" go -C interop vet ./...
step "vet bench" go -C bench/shuffle vet ./...
step govulncheck vulnerable
if command -v shellcheck >/dev/null; then
  step shellcheck scripts
else
  echo 'skip  shellcheck   (not installed)'
fi

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint: %s\n' "${failed[*]}" >&2
  exit 1
fi
