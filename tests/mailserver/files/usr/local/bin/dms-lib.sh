# What the start and the watcher of changes share: how the files of the operator become the tables of
# Postfix and Dovecot. Sourced.
# shellcheck shell=bash disable=SC2034

config=/tmp/docker-mailserver
userdb=/etc/dovecot/userdb
sums=/tmp/docker-mailserver-config-chksum

# Measured: date with seconds and zone, the level in colour and padded, the program; to stderr.
log() { # level text
    local colour
    case $1 in INFO) colour='0;34' ;; WARN) colour='1;33' ;; *) colour='1;31' ;; esac
    printf '%s \e[%sm%-5s\e[0m %s: %s\n' "$(date --rfc-3339=seconds)" "$colour" "$1" "${0##*/}" "$2" >&2
}

# The lines of a file that say something. Measured: a missing newline at the end is added by the reader,
# carriage returns are removed, blank lines and comments mean nothing.
lines() {
    [ -f "$1" ] || return 0
    sed -i -e 's/\r$//' -e '$a\' "$1"
    grep -Ev '^[[:space:]]*(#|$)' "$1" || true
}

# Measured: the files that are watched. The access files, opendkim/ and fetchmail.cf are not.
watched() {
    local name
    for name in postfix-accounts.cf postfix-virtual.cf postfix-regexp.cf postfix-aliases.cf \
        postfix-relaymap.cf postfix-sasl-password.cf dovecot-quotas.cf dovecot-masters.cf; do
        [ ! -f "$config/$name" ] || echo "$config/$name"
    done
    [ "$ENABLE_RSPAMD" != 1 ] || [ ! -d "$config/rspamd" ] || find "$config/rspamd" -type f
}

# Measured: the book of the watcher has lines "SHA-512  path".
checksums() { watched | sort | xargs -r -d '\n' sha512sum -- 2>/dev/null || true; }

# Measured: a row is addr:hash:uid:gid::home::extra; the third field of an account's line goes there, and
# so does its quota, in the words of each Dovecot.
quota_of() { # address
    local found
    # Measured: by an unanchored pattern, so that ann@ may get the quota of joann@.
    found=$(grep -i -m 1 -- "$1:" "$config/dovecot-quotas.cf" 2>/dev/null | cut -d : -f 2)
    [ -n "$found" ] || return 0
    case $(dovecot --version) in
    2.3*) echo "userdb_quota_rule=*:bytes=$found" ;;
    *) echo "userdb_quota_storage_size=$found userdb_quota_storage_grace=10k" ;;
    esac
}

# Measured: userdb and vmailbox are emptied and then filled line by line, in about 15 ms an account,
# and until its line is there a user is unknown.
accounts() {
    local login hash extra quota local_part domain
    echo '# made from postfix-accounts.cf' >/etc/postfix/vmailbox
    : >"$userdb"
    chown dovecot:dovecot "$userdb"
    chmod 640 "$userdb"
    : >/etc/postfix/vhost.new
    while IFS='|' read -r login hash extra; do
        local_part=${login%@*} domain=${login##*@}
        quota=
        [ "$ENABLE_QUOTAS" != 1 ] || quota=$(quota_of "$login")
        [ -z "$quota" ] || extra=${extra:+$extra }$quota
        echo "$login $domain/$local_part/" >>/etc/postfix/vmailbox
        echo "$login:$hash:5000:5000::/var/mail/$domain/$local_part/home::$extra" >>"$userdb"
        mkdir -p "/var/mail/$domain/$local_part/home"
        # Read in the scripts: a user's sieve file is copied at every regeneration.
        [ ! -f "$config/$login.dovecot.sieve" ] ||
            cp "$config/$login.dovecot.sieve" "/var/mail/$domain/$local_part/home/.dovecot.sieve"
        chown -R --from=root 5000:5000 "/var/mail/$domain"
        echo "$domain" >>/etc/postfix/vhost.new
        sleep 0.005
    done < <(lines "$config/postfix-accounts.cf")
    chown 5000:5000 /var/mail
    [ "$ENABLE_QUOTAS" != 1 ] || alias_users
}

# Measured: with quotas on, an alias is a user of Dovecot with the password and the mailbox of its target,
# found by an unanchored pattern: on 2.3 only an alias with one target, on 2.4 by the first that is local.
alias_users() {
    local alias targets target row user domain attribute=userdb_mail_path=
    case $(dovecot --version) in 2.3*) attribute=userdb_mail=maildir: ;; esac
    while read -r alias targets; do
        case $alias in @* | '') continue ;; esac
        case $(dovecot --version) in 2.3*) case $targets in *,*) continue ;; esac ;; esac
        for target in ${targets//,/ }; do
            row=$(grep -i -m 1 -- "$target|" "$config/postfix-accounts.cf" | cut -d '|' -f 2) || true
            [ -n "$row" ] || continue
            user=${target%@*} domain=${target##*@}
            grep -q -- "^$alias:" "$userdb" ||
                echo "$alias:$row:5000:5000::/var/mail/$domain/$user/home::$attribute/var/mail/$domain/$user" >>"$userdb"
            break
        done
    done < <(lines "$config/postfix-virtual.cf")
}

# Measured: postfix-virtual.cf is copied; its domains are ours too; those of postfix-regexp.cf are not.
aliases() {
    local maps
    lines "$config/postfix-virtual.cf" >/etc/postfix/virtual
    sed -n 's/^[^[:space:]]*@\([^[:space:]]*\).*/\1/p' /etc/postfix/virtual >>/etc/postfix/vhost.new
    if [ -f "$config/postfix-regexp.cf" ]; then
        cp "$config/postfix-regexp.cf" /etc/postfix/regexp
        maps=$(postconf -h virtual_alias_maps)
        case $maps in *pcre:*) ;; *) postconf "virtual_alias_maps = $maps pcre:/etc/postfix/regexp" ;; esac
    fi
    : >/etc/aliases.table
    lines "$config/postfix-aliases.cf" | sed 's/^\([^:]*\):[[:space:]]*/\1 /' >/etc/aliases.table
    sort -u /etc/postfix/vhost.new >/etc/postfix/vhost
    rm -f /etc/postfix/vhost.new
}
