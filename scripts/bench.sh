#!/usr/bin/env bash
# Measures the gateway beside nginx and no proxy at all. Arguments go to longmen-bench first-look.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh bench
cargo build --locked --release -p longmen-admin -p longmen-bootstrap -p longmen-benchmark --bins
exec "${CARGO_TARGET_DIR:-target}/release/longmen-bench" first-look "$@"
