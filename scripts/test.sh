#!/usr/bin/env bash
# Runs all tests of the workspace and whatever they need, and stops that again.
#
# The last line says how many tests passed and failed. Arguments go to cargo test.
set -euo pipefail
# Jobs get process groups of their own, so that all a job started can be stopped.
set -m
cd "$(dirname "$0")/.."

scripts/setup.sh test

folder=$(mktemp -d)
chmod 711 "$folder"
output=$folder/output
tests=

finish() {
    trap - INT TERM
    if [[ -n $tests ]] && kill -0 -- "-$tests" 2>/dev/null; then
        kill -TERM -- "-$tests" 2>/dev/null || true
        wait "$tests" 2>/dev/null || true
    fi
    scripts/postgres.sh stop "$folder/postgres" >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

LONGMEN_TEST_POSTGRES_URL=$(scripts/postgres.sh start "$folder/postgres")
export LONGMEN_TEST_POSTGRES_URL

status=0
cargo test --profile e2e --workspace --locked --no-fail-fast "$@" 2>&1 | tee "$output" &
tests=$(jobs -p %%)
wait %% || status=$?
tests=

# One line per test binary: "test result: ok. 8 passed; 0 failed; 0 ignored; …".
read -r passed failed ignored < <(awk '
    /^test result: / { passed += $4; failed += $6; ignored += $8 }
    END { print passed + 0, failed + 0, ignored + 0 }' "$output")
if [[ $status -eq 0 && $failed -eq 0 && $ignored -gt 0 ]]; then
    echo "$ignored tests were ignored; a test that is not run proves nothing" >&2
    status=1
fi
if [[ $passed -eq 0 && $status -eq 0 ]]; then
    echo "no test was run" >&2
    status=1
fi
echo "$passed passed, $failed failed"
exit "$status"
