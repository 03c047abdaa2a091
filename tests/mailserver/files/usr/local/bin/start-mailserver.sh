#!/bin/bash
# Prepares all once for each container, starts the programs, then prints the mail log.
set -euo pipefail
. /usr/local/bin/dms-lib.sh

# Measured: KEY='value' lines of the effective settings, written early.
settings() {
    local pair name value
    for pair in ACCOUNT_PROVISIONER=FILE DMS_CONFIG_POLL=2 DMS_VMAIL_GID=5000 DMS_VMAIL_UID=5000 ENABLE_AMAVIS=1 \
        ENABLE_CLAMAV=0 ENABLE_FAIL2BAN=0 ENABLE_FETCHMAIL=0 ENABLE_IMAP=1 ENABLE_OPENDKIM=1 ENABLE_QUOTAS=1 \
        ENABLE_RSPAMD=0 FETCHMAIL_PARALLEL=0 FETCHMAIL_POLL=300 LOG_LEVEL=info POSTFIX_MESSAGE_SIZE_LIMIT=10240000 \
        SMTP_ONLY=0 SPOOF_PROTECTION=0 SSL_CERT_PATH= SSL_KEY_PATH= SSL_TYPE= TZ=; do
        name=${pair%%=*} value=${pair#*=}
        printf "%s='%s'\n" "$name" "${!name:-$value}"
    done >/etc/dms-settings
}

# Without an account there is nothing to serve. Known: it waits 120 s for the first one, then ends.
first_account() {
    for _ in $(seq 120); do
        [ -z "$(lines "$config/postfix-accounts.cf")" ] || return 0
        sleep 1
    done
    log ERROR 'There is no account; shutting down'
    kill 1
}

certificate() {
    local cert=/etc/ssl/certs/ssl-cert-snakeoil.pem key=/etc/ssl/private/ssl-cert-snakeoil.key
    case $SSL_TYPE in
    manual) cert=$SSL_CERT_PATH key=$SSL_KEY_PATH ;;
    self-signed) cert=$config/ssl/$(hostname -f)-cert.pem key=$config/ssl/$(hostname -f)-key.pem ;;
    *) DEBIAN_FRONTEND=noninteractive make-ssl-cert generate-default-snakeoil --force-overwrite ;;
    esac
    mkdir -p /etc/dms/tls
    cp "$cert" /etc/dms/tls/cert
    install -m 600 "$key" /etc/dms/tls/key
    postconf smtpd_tls_cert_file=/etc/dms/tls/cert smtpd_tls_key_file=/etc/dms/tls/key
}

# Measured: the tree is copied by the first start only; a key that is made later signs once it is
# copied and opendkim read it.
dkim() {
    mkdir -p /etc/opendkim/keys /run/opendkim
    [ ! -d "$config/opendkim" ] || cp -a "$config/opendkim/." /etc/opendkim/
    touch /etc/opendkim/KeyTable /etc/opendkim/SigningTable
    [ -s /etc/opendkim/TrustedHosts ] || printf '127.0.0.1\nlocalhost\n' >/etc/opendkim/TrustedHosts
    chown -R opendkim:opendkim /etc/opendkim /run/opendkim
    chmod -R go-rwx /etc/opendkim/keys
}

# Measured: the sending block becomes part of dms_smtpd_sender_restrictions at the first start only.
access() {
    local before
    if [ -f "$config/postfix-send-access.cf" ]; then
        before=$(postconf -h dms_smtpd_sender_restrictions)
        postconf "dms_smtpd_sender_restrictions = check_sender_access texthash:$config/postfix-send-access.cf, $before"
    fi
    if [ -f "$config/postfix-receive-access.cf" ]; then
        before=$(postconf -h smtpd_recipient_restrictions)
        postconf "smtpd_recipient_restrictions = check_recipient_access texthash:$config/postfix-receive-access.cf, $before"
    fi
}

filters() {
    local milters=
    # Measured: where both would sign, OpenDKIM does.
    # shellcheck disable=SC2016
    [ "$ENABLE_OPENDKIM" != 1 ] || milters='$dkim_milter'
    if [ "$ENABLE_RSPAMD" = 1 ]; then
        milters="${milters:+$milters }inet:localhost:11332"
        mkdir -p /etc/rspamd/local.d /etc/rspamd/override.d /run/rspamd
        printf 'milter = yes;\nbind_socket = "localhost:11332";\ntimeout = 120s;\nupstream "local" {\n  default = yes;\n  self_scan = yes;\n}\n' \
            >/etc/rspamd/local.d/worker-proxy.inc
        printf 'type = "file";\nfilename = "/var/log/mail/rspamd.log";\n' >/etc/rspamd/local.d/logging.inc
        touch /var/log/mail/rspamd.log
        chown _rspamd:_rspamd /run/rspamd /var/log/mail/rspamd.log
        [ ! -d "$config/rspamd/override.d" ] || cp -a "$config/rspamd/override.d/." /etc/rspamd/override.d/
    fi
    postconf "smtpd_milters = $milters" "non_smtpd_milters = $milters"
    if [ "$ENABLE_AMAVIS" = 1 ]; then
        printf 'use strict;\n$myhostname = "%s";\n$log_level = 0;\n1;\n' "$(hostname -f)" \
            >/etc/amavis/conf.d/60-dms
        postconf 'content_filter = smtp-amavis:[127.0.0.1]:10024'
    fi
}

# Measured: postfix-main.cf and user-patches.sh are for the first start; the exit code of the latter
# means nothing.
overrides() {
    local line
    while read -r line; do postconf "$line"; done < <(lines "$config/postfix-main.cf")
    while read -r line; do postconf -P "$line"; done < <(lines "$config/postfix-master.cf")
    [ ! -f "$config/dovecot.cf" ] || cat "$config/dovecot.cf" >>/etc/dovecot/dovecot.conf
    [ ! -f "$config/user-patches.sh" ] || bash "$config/user-patches.sh" || true
}

# Measured: a restart skips the whole set-up; the mark is /CONTAINER_START.
if [ -e /CONTAINER_START ]; then
    log INFO 'Container was restarted. Skipping most setup routines.'
    . /etc/dms-settings
else
    settings
    . /etc/dms-settings
    postconf "myhostname = $(hostname -f)" "message_size_limit = $POSTFIX_MESSAGE_SIZE_LIMIT" 'mydomain = localdomain'
    certificate
    first_account
    accounts
    aliases
    dkim
    access
    filters
    # Measured: a sender must then be owned by the login, its tagged addresses are not.
    # shellcheck disable=SC2016
    [ "$SPOOF_PROTECTION" != 1 ] || postconf 'smtpd_sender_login_maps = unionmap:{texthash:/etc/postfix/virtual, pipemap:{texthash:/etc/postfix/vmailbox, pcre:{{/.*/ $0}}}}' \
        'mua_sender_restrictions = reject_authenticated_sender_login_mismatch, $dms_smtpd_sender_restrictions'
    overrides
    date >/CONTAINER_START
fi
checksums >"$sums"
touch /var/log/mail/mail.log
printed=$(stat -c %s /var/log/mail/mail.log)
rm -f /run/rsyslogd.pid /run/dovecot/master.pid /var/spool/postfix/pid/master.pid

supervisorctl start rsyslog
until [ -S /dev/log ]; do sleep 0.05; done
[ "$ENABLE_OPENDKIM" != 1 ] || supervisorctl start opendkim
[ "$ENABLE_RSPAMD" != 1 ] || supervisorctl start rspamd
[ "$ENABLE_AMAVIS" != 1 ] || supervisorctl start amavis
supervisorctl start dovecot postfix changedetector
log INFO "$(hostname -f) is up and running"
# Measured: the container's own output is the mail log.
exec tail -c "+$((printed + 1))" -F /var/log/mail/mail.log
