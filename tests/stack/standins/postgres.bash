#!/bin/bash
# As the official image: the first start makes the cluster, with a password from a file.
set -euo pipefail
data=/var/lib/postgresql/data
as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
chown postgres: "$data" /run/postgresql
if [ ! -e "$data/PG_VERSION" ]; then
    "${as[@]}" initdb -D "$data" -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
        --auth-local=trust --auth-host=scram-sha-256 -E UTF8 --no-locale
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
    echo "create database \"$POSTGRES_DB\"" | "${as[@]}" postgres --single -D "$data" postgres
fi
exec "${as[@]}" postgres -D "$data" -c listen_addresses='*'
