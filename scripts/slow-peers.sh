#!/usr/bin/env bash
# slowhttptest (slow heads, slow bodies, slow reading) and h2load against a gateway that runs already, with ordinary
# traffic by wrk beside each: what becomes of the slow ones, and what the others notice. Prints a table in Markdown.
#
#   scripts/slow-peers.sh [http://localhost:9195]      where /4k and /echo are those of `longmen-bench origin`
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-http://localhost:9195}
seconds=40
connections=1000

missing=()
for pair in slowhttptest:slowhttptest h2load:nghttp2-client wrk:wrk; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
if ((${#missing[@]})); then
    sudo=$([[ $(id -u) == 0 ]] || echo sudo)
    $sudo apt-get update -q >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}" >&2
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What wrk saw: requests, p99, errors.
ordinary() {
    awk '/ requests in /{n=$1} $1=="99%"{p=$2} /Non-2xx|Socket errors/{e=e" "$0}
        END{printf "%s requests, p99 %s,%s", n, p, (e == "" ? " 0 errors" : e)}' "$1"
}

echo "| peers | what became of them | ordinary requests beside |"
echo "|---|---|---|"
wrk --latency -t1 -c16 -d10s "$base/4k" >"$folder/wrk"
echo "| none | – | $(ordinary "$folder/wrk") |"

slow() {
    local name=$1
    shift
    wrk --latency -t1 -c16 -d$((seconds + 5))s "$base/4k" >"$folder/wrk" &
    local wrk=$!
    slowhttptest -c $connections -r 200 -l $seconds -p 3 -o "$folder/$name" -g "$@" >"$folder/$name.out" 2>&1 || true
    wait $wrk
    # Seconds, closed, pending, connected, whether a probe was answered.
    local end service
    end=$(tail -n 1 "$folder/$name.csv" | awk -F, '{printf "of %d, %d closed and %d open at the end; ", '$connections', $2, $4}')
    service=$(awk -F, 'NR > 1 && $5 == 0 {down++} END{print (down ? "not available for " down " s" : "available throughout")}' "$folder/$name.csv")
    echo "| $name | $end$service | $(ordinary "$folder/wrk") |"
}

slow "slow heads" -H -i 5 -x 24 -u "$base/4k"
slow "slow bodies" -B -i 5 -s 8192 -x 10 -u "$base/echo"
slow "slow reading" -X -n 5 -w 10 -y 20 -z 32 -k 3 -u "$base/4k"

wrk --latency -t1 -c16 -d10s "$base/4k" >"$folder/wrk" &
h2load -n 100000 -c 32 -m 32 "$base/4k" >"$folder/h2load"
wait $!
echo "| h2load, 32 connections with 32 streams | $(sed -n 's/^\(requests:.*\)/\1/p; s/^\(finished in [^,]*, [^,]*\),.*/\1;/p' "$folder/h2load" |
    tr '\n' ' ')| $(ordinary "$folder/wrk") |"
