#!/usr/bin/env bash
# Writes the generated files anew: admin/openapi.json, docs/configuration.md,
# docs/golden-coverage.md and docs/golden-gateway.md. The tests that compare them with the code also write them.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test
UPDATE_OPENAPI=1 UPDATE_GOLDEN_COVERAGE=1 UPDATE_GOLDEN_GATEWAY=1 LONGMEN_UPDATE_DOCS=1 \
    cargo test --quiet --profile e2e --workspace --locked -- \
    the_checked_in_document_is_current \
    the_page_of_the_docs_is_fresh \
    the_reference_s_answers_are_ours \
    requests_are_answered_and_passed_on_as_recorded
git status --short admin/openapi.json docs/configuration.md docs/golden-coverage.md docs/golden-gateway.md
