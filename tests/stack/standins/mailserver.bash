#!/bin/bash
# Postfix and Dovecot as docker-mailserver sets them up for a client of port 587: TLS with the
# operator's certificate, a login against postfix-accounts.cf. All mail ends in one folder.
set -euo pipefail
sed 's/|/:/' /tmp/docker-mailserver/postfix-accounts.cf >/etc/dovecot/users
chown dovecot /etc/dovecot/users
cat >/etc/dovecot/dovecot.conf <<CONF
dovecot_config_version = 2.4.1
dovecot_storage_version = 2.4.1
protocols =
ssl = no
auth_allow_cleartext = yes
auth_mechanisms = plain login
log_path = /dev/stderr
passdb passwd-file {
  passwd_file_path = /etc/dovecot/users
}
service auth {
  unix_listener /var/spool/postfix/private/auth {
    mode = 0660
    user = postfix
    group = postfix
  }
}
CONF
postconf -e "myhostname=$(hostname)" maillog_file=/dev/stdout inet_protocols=ipv4 mydestination= \
    "smtpd_tls_cert_file=$SSL_CERT_PATH" "smtpd_tls_key_file=$SSL_KEY_PATH" \
    transport_maps=static:virtual virtual_mailbox_base=/var/mail virtual_mailbox_maps=static:all/ \
    virtual_uid_maps=static:5000 virtual_gid_maps=static:5000 \
    smtpd_sasl_type=dovecot smtpd_sasl_path=private/auth
postconf -M "submission/inet=submission inet n - n - - smtpd"
postconf -P submission/inet/smtpd_tls_security_level=encrypt submission/inet/smtpd_sasl_auth_enable=yes \
    submission/inet/smtpd_tls_auth_only=yes \
    submission/inet/smtpd_client_restrictions=permit_sasl_authenticated,reject
chown 5000:5000 /var/mail
# Makes its folders, where Dovecot's socket shall be.
postfix check
dovecot
exec postfix start-fg
