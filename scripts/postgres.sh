#!/usr/bin/env bash
# A PostgreSQL server of one's own, for tests and trials: free port, private folder, a user with a
# password made up for it, durable writes on. As root it runs as another user, as it insists.
#
#   scripts/postgres.sh start DIR          starts it and prints its address
#   scripts/postgres.sh restart DIR        ends it as a crash would, and starts it anew at the same address
#   scripts/postgres.sh stop DIR           stops it and deletes its data; fine if it does not run
#   scripts/postgres.sh run DIR            as start, then waits for the end of its input, and stops
#   scripts/postgres.sh create DATABASE    makes a database on the server whose address is in $URL
set -euo pipefail

usage() {
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 64
}

fail() {
    echo "postgres: $*" >&2
    exit 1
}

# Debian keeps the server's programs out of the path; the newest version counts.
bin() {
    local program=$1 found
    found=$(compgen -G "/usr/lib/postgresql/*/bin/$program" | sort -V | tail -n 1) || true
    if [[ -z $found ]]; then found=$(command -v "$program") || true; fi
    [[ -n $found ]] || fail "$program not found; install the package postgresql"
    echo "$found"
}

# Runs a program of the server as the user that may run it.
as_owner() {
    if [[ $EUID -eq 0 ]]; then
        setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups "$@"
    else
        "$@"
    fi
}

free_port() {
    local port
    for _ in {1..200}; do
        port=$((RANDOM % 20000 + 40000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
    fail "no free port found"
}

start() {
    local dir=$1 data port password options
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    [[ ! -e $dir/data ]] || fail "$dir holds a server already"
    if [[ $EUID -eq 0 ]]; then
        chown "$owner" "$dir"
        # The folder may stand under one that only root may enter.
        if as_owner test -w "$dir"; then
            data=$dir/cluster
        else
            data=$(mktemp -d /tmp/longmen-postgres.XXXXXX)
            chown "$owner" "$data"
        fi
    else
        data=$dir/cluster
    fi
    mkdir -p "$data"
    if [[ $EUID -eq 0 ]]; then chown "$owner" "$data"; fi
    chmod 700 "$data"
    ln -s "$data" "$dir/data"

    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    options=(--username=longmen --auth=scram-sha-256 --pwfile="$data/password" --encoding=UTF8)
    # What initdb writes need not outlive a crash of the machine; what tests write is flushed.
    options+=(--locale=C.UTF-8 --no-sync)
    # Not the order of bytes: a statement that relies on it by accident must show.
    if [[ $("$(bin initdb)" --help) == *--icu-locale* ]]; then
        options+=(--locale-provider=icu --icu-locale=en-US)
    fi
    (umask 077 && echo "$password" >"$data/password")
    if [[ $EUID -eq 0 ]]; then chown "$owner" "$data/password"; fi
    if ! as_owner "$(bin initdb)" -D "$data/db" "${options[@]}" >"$dir/initdb.log" 2>&1; then
        cat "$dir/initdb.log" >&2
        stop "$dir"
        fail "initdb failed"
    fi
    rm "$data/password"

    for _ in {1..5}; do
        port=$(free_port)
        if as_owner "$(bin pg_ctl)" -D "$data/db" -l "$data/log" -w -t 60 -s start \
            -o "-c port=$port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' \
                -c max_connections=300 -c fsync=on -c checkpoint_timeout=1h -c max_wal_size=2GB" \
            </dev/null >/dev/null 2>&1; then
            # Nobody but this script's caller may read the password.
            (umask 077 && echo "postgres://longmen:$password@127.0.0.1:$port/postgres" >"$dir/url")
            cat "$dir/url"
            return
        fi
    done
    tail -n 20 "$data/log" >&2 || true
    stop "$dir"
    fail "the server did not start"
}

# Its options are those of its start.
restart() {
    local dir=$1 data
    [[ -e $dir/data ]] || fail "$dir holds no server"
    data=$(readlink -f "$dir/data")
    as_owner "$(bin pg_ctl)" -D "$data/db" -l "$data/log" -m immediate -w -t 60 -s restart \
        </dev/null >/dev/null 2>&1 || fail "the server did not come back"
}

# At once: its data is deleted anyway.
stop() {
    local dir=$1 data
    [[ -e $dir/data ]] || return 0
    data=$(readlink -f "$dir/data")
    if [[ -e $data/db/postmaster.pid ]]; then
        as_owner "$(bin pg_ctl)" -D "$data/db" -m immediate -w -t 60 -s stop >/dev/null 2>&1 || true
    fi
    rm -rf "$data" "$dir/data" "$dir/url" "$dir/initdb.log"
    rmdir "$dir" 2>/dev/null || true
}

owner=$(id -un)
if [[ $EUID -eq 0 ]]; then
    owner=postgres
    id "$owner" >/dev/null 2>&1 || owner=nobody
    # What it starts must not stand in a folder that the owner cannot enter.
    cd /
fi

case ${1-} in
    start | restart | stop | run)
        [[ $# -eq 2 ]] || usage
        case $2 in /*) dir=$2 ;; *) dir=${OLDPWD:-$PWD}/$2 ;; esac
        ;;
    create) [[ $# -eq 2 ]] || usage ;;
    *) usage ;;
esac

case $1 in
    start) start "$dir" ;;
    restart) restart "$dir" ;;
    stop) stop "$dir" ;;
    run)
        # Whoever waits for the address sees the end of the output right after it.
        trap 'stop "$dir"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        start "$dir"
        exec >/dev/null
        while read -r _; do :; done
        ;;
    create)
        # Not as an argument: those show in the list of processes.
        [[ ${URL-} =~ ^postgres(ql)?://([^:@/]+)(:([^@/]*))?@([^:/]+)(:([0-9]+))?/([^?]*) ]] ||
            fail "URL is not set to postgres://USER:PASSWORD@HOST:PORT/DATABASE"
        PGUSER=${BASH_REMATCH[2]} PGPASSWORD=${BASH_REMATCH[4]} PGHOST=${BASH_REMATCH[5]} \
            PGPORT=${BASH_REMATCH[7]:-5432} PGDATABASE=${BASH_REMATCH[8]} \
            "$(bin psql)" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
            --command="CREATE DATABASE \"$2\""
        ;;
esac
