#!/usr/bin/env bash
# Starts an admin, a gateway and a demo upstream, and routes /demo/** to that upstream by the
# admin's public API. Ctrl-C stops all three.
#
# DATABASE_URL                 the admin's database; an SQLite file in .data/run without it
# LONGMEN_ADMIN_PORT           9095    LONGMEN_GATEWAY_PORT     9195
# LONGMEN_UPSTREAM_PORT        8189    LONGMEN_MANAGEMENT_PORT  8090
# LONGMEN_ADMIN_PASSWORD       123456, the password of user admin
# LONGMEN_PROFILE              release, the cargo profile to build
set -euo pipefail
# Started in the background of a shell without job control, a script ignores SIGINT for good: begin
# again with the default, so that it stops there as well.
if [[ -z ${LONGMEN_RUN_AGAIN-} ]] && env --default-signal=INT true 2>/dev/null; then
    exec env --default-signal=INT,TERM LONGMEN_RUN_AGAIN=1 bash "$0" "$@"
fi
# Jobs get process groups of their own: Ctrl-C reaches this script alone, which stops them in order.
set -m
cd "$(dirname "$0")/.."

admin_port=${LONGMEN_ADMIN_PORT:-9095}
gateway_port=${LONGMEN_GATEWAY_PORT:-9195}
upstream_port=${LONGMEN_UPSTREAM_PORT:-8189}
management_port=${LONGMEN_MANAGEMENT_PORT:-8090}
password=${LONGMEN_ADMIN_PASSWORD:-123456}
profile=${LONGMEN_PROFILE:-release}

admin=http://localhost:$admin_port
gateway=http://localhost:$gateway_port
namespace=649330b6-c2d7-4edc-be8e-8a54df9eb385
data=$PWD/.data/run
names=()
pids=()

fail() {
    echo "run: $*" >&2
    exit 1
}

# holder PORT: who listens on it, as far as the system tells: `ss` may be absent, and whose files
# are not ours to read are not known by name.
holder() {
    local hex inode link pid name
    printf -v hex '%04X' "$1"
    # Columns: number, address:port, peer, state (0A listens), …, inode the tenth.
    for inode in $(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null \
        | awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 }'); do
        link=$(find /proc/[0-9]*/fd -lname "socket:\\[$inode\\]" -print -quit 2>/dev/null || true)
        [[ -n $link ]] || continue
        pid=${link#/proc/}
        pid=${pid%%/*}
        name=$(cat "/proc/$pid/comm" 2>/dev/null || true)
        echo "${name:-a process} (process $pid)"
        return
    done
    echo "a process that cannot be told, of another user perhaps"
}

# check_port NAME PORT VARIABLE
check_port() {
    if (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; then
        fail "port $2 for the $1 is taken by $(holder "$2"); stop that, or choose another port:" \
            "$3=<port> make run"
    fi
}

check_ports() {
    check_port admin "$admin_port" LONGMEN_ADMIN_PORT
    check_port gateway "$gateway_port" LONGMEN_GATEWAY_PORT
    check_port "demo upstream" "$upstream_port" LONGMEN_UPSTREAM_PORT
    check_port "gateway's management" "$management_port" LONGMEN_MANAGEMENT_PORT
}

# start NAME COMMAND…: its output goes to .data/run/NAME.log
start() {
    local name=$1
    shift
    "$@" >"$data/$name.log" 2>&1 </dev/null &
    names+=("$name")
    pids+=("$!")
}

# Stops what was started, the last first, each within ten seconds.
stop_all() {
    trap '' INT TERM
    local index pid tick
    # The shell's own notices of ended jobs are no news here.
    exec 3>&2 2>/dev/null
    for ((index = ${#pids[@]} - 1; index >= 0; index--)); do
        pid=${pids[index]}
        kill -TERM "$pid" || continue
        for ((tick = 0; tick < 100; tick++)); do
            kill -0 "$pid" || break
            sleep 0.1
        done
        if kill -KILL "$pid"; then
            echo "run: ${names[index]} did not stop within 10 s and was killed" >&3
        fi
        wait "$pid" || true
    done
}

# Fails with the end of its log when one of the processes is gone.
check_alive() {
    local index
    for index in "${!pids[@]}"; do
        if ! kill -0 "${pids[index]}" 2>/dev/null; then
            tail -n 20 "$data/${names[index]}.log" >&2
            fail "the ${names[index]} has ended; its log is $data/${names[index]}.log"
        fi
    done
}

# wait_for SECONDS WHAT URL: until the URL answers 200
wait_for() {
    local limit=$((SECONDS + $1)) status=none
    while ((SECONDS < limit)); do
        check_alive
        status=$(curl -s -o /dev/null -m 2 -w '%{http_code}' "$3" || true)
        if [[ $status = 200 ]]; then return; fi
        sleep 0.1
    done
    fail "$2 does not answer at $3 within $1 s (last status: $status); logs are in $data"
}

# field NAME: the first text member of that name in the JSON on standard input
field() {
    sed -n "s/^[^{]*{/{/; s/\"$1\":\"\([^\"]*\)\"/\n\1\n/; s/^[^\n]*\n\([^\n]*\)\n.*/\1/p" | head -n 1
}

# Password and token go to curl by standard input: arguments can be read by every user of the
# machine.

# log_in: the admin's answer to the log-in of user admin
log_in() {
    printf '%s' "$password" | curl -sS -m 10 -G "$admin/platform/login" \
        --data-urlencode userName=admin --data-urlencode password@- | checked "GET /platform/login"
}

# api METHOD PATH [BODY]: the admin's answer
api() {
    printf 'X-Access-Token: %s\n' "$token" | curl -sS -m 10 -X "$1" "$admin$2" -H @- \
        -H 'Content-Type: application/json' ${3:+-d "$3"} | checked "$1 ${2%%\?*}"
}

# checked WHAT: passes the answer on; fails with it unless its code is 200
checked() {
    local answer
    answer=$(cat)
    if [[ $answer != *'"code":200'* ]]; then
        fail "$1: the admin answered $answer"
    fi
    printf '%s\n' "$answer"
}

# Each step is taken only if an earlier run has not: data may be there already.
register_demo() {
    local selector upstreams detail handler rules page="currentPage=1&pageSize=100"
    token=$(log_in | field token)
    [[ -n $token ]] || fail "the login's answer has no token"

    selector=$(api GET "/selector?pluginId=5&name=demo&namespaceId=$namespace&$page" \
        | { grep -o '"id":"[^"]*","pluginId":"5","name":"demo"' || true; } | field id)
    if [[ -z $selector ]]; then
        selector=$(api POST /selector '{
            "pluginId": "5", "name": "demo", "type": 1, "matchMode": 0, "sort": 1, "enabled": true,
            "loged": false, "continued": true, "matchRestful": false, "handle": "[]",
            "namespaceId": "'"$namespace"'",
            "selectorConditions": [{"paramType": "uri", "operator": "pathPattern",
                "paramName": "/", "paramValue": "/demo/**"}]}' | field data)
    fi
    [[ -n $selector ]] || fail "the answer to POST /selector has no id"

    detail=$(api GET "/selector/$selector")
    handler=$(grep -o '"discoveryHandler":{"id":"[^"]*"' <<<"$detail" | field id || true)
    if [[ -z $handler ]]; then
        upstreams='[{"protocol": "http://", "url": "127.0.0.1:'$upstream_port'", "status": 0,
            "weight": 50, "props": "{\"warmup\":\"10\"}", "startupTime": "0",
            "namespaceId": "'$namespace'"}]'
        api POST /proxy-selector/binding '{
            "selectorId": "'"$selector"'", "name": "demo", "pluginName": "divide",
            "type": "divide", "forwardPort": null, "props": "{}", "listenerNode": "",
            "handler": "", "namespaceId": "'"$namespace"'",
            "discovery": {"discoveryType": "local", "serverList": "", "props": "{}"},
            "discoveryUpstreams": '"$upstreams"'}' >/dev/null
    elif [[ $detail != *"\"127.0.0.1:$upstream_port\""* ]]; then
        api PUT "/discovery-upstream/$handler" '[{"discoveryHandlerId": "'"$handler"'",
            "namespaceId": "'"$namespace"'", "protocol": "http://",
            "url": "127.0.0.1:'"$upstream_port"'", "status": 0, "weight": 50,
            "props": "{\"warmup\":\"10\"}"}]' >/dev/null
    fi

    rules=$(api GET "/rule?selectorId=$selector&namespaceId=$namespace&$page")
    if [[ $rules != *'"name":"demo"'* ]]; then
        api POST /rule '{
            "selectorId": "'"$selector"'", "matchMode": 0, "name": "demo", "enabled": true,
            "loged": false, "sort": 1, "matchRestful": false, "namespaceId": "'"$namespace"'",
            "handle": "{\"loadBalance\":\"roundRobin\",\"retryStrategy\":\"current\",\"retry\":3,\"timeout\":3000,\"headerMaxSize\":10240,\"requestMaxSize\":102400}",
            "ruleConditions": [{"paramType": "uri", "operator": "pathPattern",
                "paramName": "/", "paramValue": "/demo/**"}]}' >/dev/null
    fi
}

check_ports
scripts/setup.sh run

echo "building (profile $profile)"
cargo build --locked --profile "$profile" \
    -p longmen-admin -p longmen-bootstrap -p longmen-benchmark --bins
bin=${CARGO_TARGET_DIR:-target}/$profile

# Building takes minutes: somebody may have come in between.
check_ports
mkdir -p "$data"
chmod 700 "$data"
trap stop_all EXIT
trap 'exit 0' INT TERM
start upstream "$bin/longmen-bench" origin --name demo --bind "127.0.0.1:$upstream_port"
# The password is no argument: those can be read by every user of the machine.
SHENYU_ADMIN_PASSWORD=$password start admin "$bin/longmen-admin" --server.port="$admin_port" \
    --shenyu.database.path="$data/longmen.db" --shenyu.sync.tokenPath="$data/sync-token" \
    --shenyu.admin.passwordPath="$data/admin-password"
wait_for 120 "the admin" "$admin/actuator/health"
start gateway "$bin/longmen-bootstrap" --server.port="$gateway_port" \
    --shenyu.management.port="$management_port" \
    --shenyu.snapshot.path="$data/gateway.snapshot" \
    --shenyu.sync.websocket.urls="ws://localhost:$admin_port/websocket"
register_demo
wait_for 120 "the demo route" "$gateway/demo/hello"

echo "admin and its API viewer:"
echo "$admin/"
echo "log in as user admin with password $password, which is set for this demo only"
echo "ready"
echo "curl $gateway/demo/hello"

while true; do
    # Ends with the first process that does; the signals of the user end this script instead.
    wait -n || true
    check_alive
done
