#!/usr/bin/env bash
# The random tests of the matcher for much longer than in every run of the tests. The seeds are
# the same each time: tables from seed 1 on. LONGMEN_MATCHER_PAIRS says for how many pairs.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
pairs=${LONGMEN_MATCHER_PAIRS:-1000000}
LONGMEN_MATCHER_PAIRS=$pairs cargo test --quiet --profile e2e --locked -p longmen-core --lib -- \
    --nocapture linear_index_and_caches_answer_alike
