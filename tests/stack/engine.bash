#!/usr/bin/env bash
# engine.bash PREFIX: a Docker engine for tests. Uses the one that answers, else starts one of its own
# in a folder of its own. Makes the image PREFIX-base (Debian 13), prints "ready DOCKER_HOST", and
# when its standard input ends, however that came about, removes all whose name begins with PREFIX,
# its own engine too.
set -euo pipefail
prefix=$1
folder= engine= forwards= policy=

say() { echo "engine: $*" >&2; }
trap : INT TERM HUP # The end of the input says when; these come to the whole group.

remove() {
    local kind names
    names=$(docker ps -aq --filter "name=$prefix")
    [ -z "$names" ] || docker rm -f -v $names >/dev/null || true
    for kind in network volume; do
        names=$(docker $kind ls -q --filter "name=$prefix")
        [ -z "$names" ] || docker $kind rm $names >/dev/null || true
    done
    names=$(docker images --format '{{.Repository}}:{{.Tag}}' --filter "reference=$prefix*")
    [ -z "$names" ] || docker rmi -f $names >/dev/null || true
}

# What an engine leaves behind in the kernel.
forget_rules() {
    local table rule chain
    for table in filter nat; do
        iptables -t $table -S 2>/dev/null | grep -E '^-A .*-j DOCKER' | while read -r rule; do
            eval "iptables -t $table -D ${rule#-A }" || true
        done
        for chain in $(iptables -t $table -S 2>/dev/null | sed -n 's/^-N \(DOCKER[^ ]*\)$/\1/p'); do
            iptables -t $table -F "$chain" || true
        done
        for chain in $(iptables -t $table -S 2>/dev/null | sed -n 's/^-N \(DOCKER[^ ]*\)$/\1/p'); do
            iptables -t $table -X "$chain" || true
        done
    done
    [ -z "$policy" ] || iptables -P FORWARD "$policy" || true
}

finish() {
    local code=$?
    trap - EXIT
    remove || true
    if [ -n "$engine" ]; then
        kill "$engine" 2>/dev/null || true
        for _ in $(seq 100); do
            kill -0 "$engine" 2>/dev/null || break
            sleep 0.2
        done
        kill -KILL "$engine" 2>/dev/null || true
        wait "$engine" 2>/dev/null || true
        forget_rules 2>/dev/null || true
        [ -z "$forwards" ] || echo "$forwards" >/proc/sys/net/ipv4/ip_forward || true
    fi
    if [ -n "$folder" ]; then
        awk -v under="$folder/" 'index($2, under) == 1 { print $2 }' /proc/mounts | sort -r |
            while read -r mount; do umount -l "$mount" || true; done
        rm -rf "$folder"
    fi
    exit "$code"
}
trap finish EXIT

answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

command -v docker >/dev/null || { say "there is no docker; run .ci/setup"; exit 1; }
if ! answers; then
    [ "$(id -u)" -eq 0 ] || { say "no Docker engine answers, and only root can start one"; exit 1; }
    command -v dockerd >/dev/null || { say "there is no dockerd; run .ci/setup"; exit 1; }
    # Two engines would share the rules and forwarding of one kernel.
    exec 9>/var/tmp/postroom-docker.lock
    flock -w 900 9 || { say "another engine of these tests has not ended in 15 minutes"; exit 1; }
    folder=$(mktemp -d /var/tmp/postroom-docker.XXXXXX)
    forwards=$(cat /proc/sys/net/ipv4/ip_forward)
    # It finds the storage by itself. Without rules, ports are passed on by its proxy alone.
    options=(--bridge=none)
    if iptables -S FORWARD >"$folder/rules" 2>/dev/null; then
        policy=$(sed -n 's/^-P FORWARD //p' "$folder/rules")
    else
        options+=(--iptables=false)
    fi
    export DOCKER_HOST=unix://$folder/socket
    dockerd "${options[@]}" --ip6tables=false --group "$(id -g)" --data-root "$folder/data" \
        --exec-root "$folder/run" -p "$folder/pid" -H "$DOCKER_HOST" >"$folder/log" 2>&1 9>&- </dev/null &
    engine=$!
    for _ in $(seq 120); do
        ! answers || break
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.5
    done
    answers || { tail -n 20 "$folder/log" >&2; say "dockerd does not start"; exit 1; }
    say "an engine of its own: $(docker info --format '{{.ServerVersion}}, {{.Driver}}') ${options[*]}"
fi

"$(dirname "$0")/debian.bash" trixie 13 "$prefix-base" 9>&-

echo "ready ${DOCKER_HOST:-}"
cat >/dev/null
