#!/usr/bin/env bash
# Installs what is missing on a Debian-like machine; does nothing where all of it is there.
#
#   scripts/setup.sh build | run | test | bench | interop | all
#
# Rust, Node and make are expected. Services that come with a package are not started.
set -euo pipefail

usage() {
    echo "usage: scripts/setup.sh build|run|test|bench|interop|all" >&2
    exit 64
}

wanted=()

# need PACKAGE COMMAND…: the package is wanted unless all of the commands are there.
need() {
    local package=$1 command
    shift
    for command in "$@"; do
        if ! command -v "$command" >/dev/null; then
            wanted+=("$package")
            return
        fi
    done
}

need_build() {
    # The crypto library, the allocator and SQLite are C.
    need gcc cc
    need g++ c++
    need make make
    if [[ ! -e /usr/include/stdlib.h ]]; then wanted+=(libc6-dev); fi
}

need_postgres() {
    if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then wanted+=(postgresql); fi
}

# sbin may be missing in the path of an ordinary user, and nginx lives there.
PATH=$PATH:/usr/sbin:/sbin

[[ $# -eq 1 ]] || usage
case $1 in
    build) need_build ;;
    run) need_build; need curl curl ;;
    test) need_build; need_postgres; need curl curl ;;
    bench) need_build; need nginx-light nginx; need wrk wrk; need util-linux taskset ;;
    interop) need_build; need util-linux taskset; need maven mvn; need default-jdk-headless javac java ;;
    all)
        need_build
        need_postgres
        need curl curl
        need nginx-light nginx
        need redis-server redis-server
        need wrk wrk
        need util-linux taskset
        ;;
    *) usage ;;
esac

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is not in the path; install Rust from https://rustup.rs" >&2
    exit 1
fi
[[ ${#wanted[@]} -gt 0 ]] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "setup: missing ${wanted[*]}, and there is no apt-get to install them with" >&2
    exit 1
fi
sudo=()
if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: missing ${wanted[*]}; run scripts/setup.sh $1 as root" >&2
        exit 1
    fi
    sudo=(sudo)
fi

log=$(mktemp)
policy=/usr/sbin/policy-rc.d
made_policy=false
finish() {
    local status=$?
    if [[ $made_policy = true ]]; then "${sudo[@]}" rm -f "$policy"; fi
    if [[ $status -ne 0 ]]; then cat "$log" >&2; fi
    rm -f "$log"
}
trap finish EXIT

apt() {
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1
}

echo "setup: installing ${wanted[*]}"
# Programs are wanted here, not services: 101 keeps packages from starting theirs.
if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
    "${sudo[@]}" chmod 755 "$policy"
    made_policy=true
fi
apt update
apt install -y --no-install-recommends "${wanted[@]}"
