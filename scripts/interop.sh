#!/usr/bin/env bash
# Builds a service on ShenYu's published Java starter with Maven, and lets it register itself with our
# admin: served, restarted under load, stopped.
#
# LONGMEN_PROFILE              e2e, the cargo profile to build
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh interop
profile=${LONGMEN_PROFILE:-e2e}
cargo build --locked --profile "$profile" --workspace --bins
folder=${CARGO_TARGET_DIR:-target}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
mvn -q -B -f scripts/stock/pom.xml -Dbuild.folder="$folder/stock" package
if [[ $profile = dev ]]; then binaries=$folder/debug; else binaries=$folder/$profile; fi
"$binaries/longmen-bench" interop --jar "$folder/stock/stock-service.jar"
