#!/usr/bin/env bash
# Sends the odd requests through nginx and HAProxy, installed by apt where they are missing, and writes
# docs/odd-requests.md: what they make of each, beside what Longmen does. Arguments go to longmen-bench odd.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for name in nginx haproxy; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "$name" >/dev/null || missing+=("$name")
done
if ((${#missing[@]})); then
    sudo=$([[ $(id -u) == 0 ]] || echo sudo)
    $sudo apt-get update -q
    # Only the programs are wanted, not a server on port 80.
    $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qy --no-install-recommends "${missing[@]}"
fi
cargo build --locked --profile e2e -p longmen-benchmark --bins
exec "${CARGO_TARGET_DIR:-target}/e2e/longmen-bench" odd "$@"
