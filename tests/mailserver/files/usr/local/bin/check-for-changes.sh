#!/bin/bash
# The watcher of changes. Measured: it compares SHA-512 sums every DMS_CONFIG_POLL (2) seconds, makes the
# tables anew, reloads Postfix and Dovecot, and only then replaces its book: until that lists the sum
# of a file, the file is not applied.
set -uo pipefail
. /etc/dms-settings
. /usr/local/bin/dms-lib.sh

while :; do
    sleep "$DMS_CONFIG_POLL"
    checksums >"$sums.new"
    if cmp -s "$sums" "$sums.new"; then
        continue
    fi
    log INFO 'Change detected'
    changed=$(diff "$sums" "$sums.new" | sed -n 's|^[<>] [0-9a-f]*  ||p' | sort -u)
    case $changed in
    *postfix-* | *dovecot-*)
        accounts
        aliases
        postfix reload
        # Measured: this disconnects every session of IMAP.
        dovecot reload
        ;;
    esac
    case $changed in *"$config/rspamd/"*)
        cp -a "$config/rspamd/override.d/." /etc/rspamd/override.d/ 2>/dev/null
        supervisorctl signal HUP rspamd
        ;;
    esac
    mv "$sums.new" "$sums"
    log INFO 'Completed handling of detected change'
done
