#!/usr/bin/env bash
# debian.bash CODENAME NUMBER IMAGE: Debian as an image, where no registry is needed to have it. As
# root it is made by debootstrap and kept in a file, which is safe to delete.
set -euo pipefail
codename=$1 number=$2 image=$3
say() { echo "debian: $*" >&2; }

if ! command -v debootstrap >/dev/null || [ "$(id -u)" -ne 0 ]; then
    docker pull -q "debian:$number-slim" >/dev/null
    docker tag "debian:$number-slim" "$image"
    exit
fi
cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/postroom
base=$cache/debian-$number.tar
mkdir -p "$cache"
exec 8>"$cache/lock-debian-$number"
flock 8
if [ ! -e "$base" ]; then
    say "making Debian $number"
    new=$base.root
    rm -rf "$new" "$base.new"
    debootstrap --variant=minbase "$codename" "$new" >"$base.log" 2>&1 8>&- ||
        { tail -n 20 "$base.log" >&2; say "Debian $number cannot be made"; exit 1; }
    rm -rf "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
    tar -C "$new" -c -f "$base.new" .
    rm -rf "$new" "$base.log"
    mv "$base.new" "$base"
fi
exec 8>&-
docker import "$base" "$image" >/dev/null
