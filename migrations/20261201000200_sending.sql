-- What goes out. The page that explains these tables is the documentation of `sending`.

create table relays (
    relay_id            uuid        not null,
    kind                text        not null default 'smtp',
    name                text        not null,
    host                text        not null,
    port                integer     not null,
    -- Implicit TLS from the first byte; else STARTTLS when offered, or required.
    secure              boolean     not null,
    require_tls         boolean     not null default false,
    -- Null inherits the instance's setting.
    reject_unauthorized boolean,
    min_tls_version     text,
    -- Names of environment variables, all with the prefix SMTP_ …
    user_env_var        text,
    password_env_var    text,
    -- … or the credentials themselves, the password sealed.
    username            text,
    password_sealed     text,
    -- Credentials without TLS: only by name of the operator, or on loopback.
    allow_clear_auth    boolean     not null default false,
    helo_name           text,
    from_address        text        not null,
    from_name           text,
    domain              text,
    any_sender          boolean     not null default false,
    priority            integer     not null,
    active              boolean     not null default true,
    max_connections     integer     not null default 8,
    on_unknown          text,
    created_at          timestamptz not null default clock_timestamp(),
    updated_at          timestamptz not null default clock_timestamp(),
    constraint relays_pkey primary key (relay_id),
    constraint relays_kind_check check (kind in ('smtp', 'sandbox')),
    constraint relays_port_check check (port between 0 and 65535),
    constraint relays_priority_check check (priority between 0 and 1000),
    constraint relays_max_connections_check check (max_connections between 1 and 1000),
    constraint relays_min_tls_version_check check (min_tls_version in ('TLSv1.2', 'TLSv1.3')),
    constraint relays_on_unknown_check check (on_unknown in ('hold', 'resend')),
    constraint relays_password_check check (password_sealed is null or password_env_var is null)
);
create unique index relays_sandbox_key on relays (kind) where kind = 'sandbox';

create table messages (
    message_id     uuid        not null,
    api_key_id     uuid,
    created_at     timestamptz not null default clock_timestamp(),
    -- The header's Message-ID without its angle brackets.
    internet_id    text        not null,
    from_address   text        not null,
    from_header    text        not null,
    to_header      text        not null,
    cc_header      text        not null default '',
    reply_to       text,
    subject        text        not null,
    size           bigint      not null,
    smtputf8       boolean     not null,
    has_attachment boolean     not null,
    tags           text[]      not null default '{}',
    metadata       jsonb       not null default '{}',
    priority       smallint    not null,
    expires_at     timestamptz,
    on_unknown     text,
    suppression_exempt boolean not null default false,
    -- Counters, kept in the transaction that changes a recipient.
    n_recipients   integer     not null,
    n_open         integer     not null,
    n_unknown      integer     not null default 0,
    n_accepted     integer     not null default 0,
    n_attempts     integer     not null default 0,
    resends        integer     not null default 0,
    started_at     timestamptz,
    last_relay     text,
    last_error     text,
    outcome        text,
    settled_at     timestamptz,
    constraint messages_pkey primary key (message_id),
    constraint messages_api_key_fkey foreign key (api_key_id) references api_keys on delete set null,
    constraint messages_internet_id_key unique (internet_id),
    constraint messages_on_unknown_check check (on_unknown in ('hold', 'resend')),
    constraint messages_priority_check check (priority between 0 and 2),
    constraint messages_counters_check check (
        n_open >= 0 and n_unknown >= 0 and n_accepted >= 0 and n_open + n_unknown + n_accepted <= n_recipients
    ),
    constraint messages_settled_check check (
        (settled_at is not null) = (n_open = 0 and n_unknown = 0)
    ),
    constraint messages_outcome_check check (
        outcome in ('sent', 'partial', 'failed', 'unknown', 'suppressed', 'cancelled', 'expired')
    )
) with (fillfactor = 80);
create index messages_api_key_idx on messages (api_key_id, message_id desc);

-- The composed bytes, in chunks of at most 256 KiB; never in a hot row. Stored as they are.
create table message_content (
    message_id uuid     not null,
    seq        integer  not null,
    bytes      bytea    not null,
    constraint message_content_pkey primary key (message_id, seq),
    constraint message_content_message_fkey foreign key (message_id) references messages on delete cascade
);
alter table message_content alter column bytes set storage external;

create table recipients (
    recipient_id    uuid        not null,
    message_id      uuid        not null,
    position        integer     not null,
    -- How it was named: to, cc or bcc.
    field           text        not null,
    address         text        not null,
    -- The address lower-cased: what suppressions and searches compare.
    lookup_key      text        not null,
    envelope_sender text        not null,
    state           text        not null,
    next_at         timestamptz,
    -- Transactions in which a server spoke of it.
    tries           integer     not null default 0,
    -- Rounds in a row in which no relay could be used at all.
    faults          integer     not null default 0,
    -- Copies sent again because nothing was known of the one before.
    resends         integer     not null default 0,
    -- Nothing is known of some copy: whatever becomes of a later one, "not accepted" is not true.
    maybe_accepted  boolean     not null default false,
    relay_id        uuid,
    attempt_id      uuid,
    code            smallint,
    enhanced        text,
    reason          text,
    text            text,
    remote_queue_id text,
    settled_at      timestamptz,
    constraint recipients_pkey primary key (recipient_id),
    constraint recipients_message_fkey foreign key (message_id) references messages on delete cascade,
    constraint recipients_field_check check (field in ('to', 'cc', 'bcc')),
    constraint recipients_state_check check (state in (
        'queued', 'sending', 'deferred', 'unknown', 'sent', 'delivered', 'delayed', 'bounced',
        'complained', 'failed', 'suppressed', 'cancelled', 'expired'
    )),
    -- Waiting recipients are due at some time; no other one is.
    constraint recipients_next_at_check check ((next_at is not null) = (state in ('queued', 'deferred'))),
    -- Only a marked transaction makes a recipient sending.
    constraint recipients_sending_check check (state <> 'sending' or attempt_id is not null)
) with (fillfactor = 80);
create unique index recipients_message_key on recipients (message_id, position);
create index recipients_lookup_idx on recipients (lookup_key, message_id desc);

create table attempts (
    attempt_id uuid        not null,
    message_id uuid        not null,
    relay_id   uuid,
    relay_name text        not null,
    process_id uuid,
    started_at timestamptz not null,
    -- Set just before the final dot may be sent.
    marked_at  timestamptz,
    ended_at   timestamptz,
    phase      text        not null,
    result     text,
    code       smallint,
    enhanced   text,
    reason     text,
    text       text,
    peer       text,
    tls        text,
    constraint attempts_pkey primary key (attempt_id),
    constraint attempts_message_fkey foreign key (message_id) references messages on delete cascade,
    constraint attempts_phase_check check (phase in (
        'relay', 'dns', 'connect', 'tls', 'greeting', 'ehlo', 'auth', 'mail', 'rcpt', 'data', 'dot'
    ))
);
create index attempts_message_idx on attempts (message_id, attempt_id);

create table attempt_recipients (
    attempt_id   uuid     not null,
    recipient_id uuid     not null,
    result       text     not null,
    code         smallint,
    enhanced     text,
    reason       text,
    text         text,
    constraint attempt_recipients_pkey primary key (attempt_id, recipient_id),
    constraint attempt_recipients_attempt_fkey foreign key (attempt_id) references attempts on delete cascade
);

create table idempotency_keys (
    api_key_id   uuid        not null,
    key          text        not null,
    request_hash bytea       not null,
    message_id   uuid        not null,
    expires_at   timestamptz not null,
    constraint idempotency_keys_pkey primary key (api_key_id, key),
    -- No foreign key to the message: a key stands for its request for a day, whatever became of it.
    constraint idempotency_keys_api_key_fkey foreign key (api_key_id) references api_keys on delete cascade
);
create index idempotency_keys_expires_idx on idempotency_keys (expires_at);

create table suppressions (
    suppression_id uuid        not null,
    -- The address lower-cased.
    lookup_key     text        not null,
    reason         text        not null,
    source         text        not null default 'manual',
    note           text,
    created_at     timestamptz not null default clock_timestamp(),
    constraint suppressions_pkey primary key (suppression_id),
    constraint suppressions_lookup_key_key unique (lookup_key)
);

-- What the built-in mail sandbox received.
create table sandbox_messages (
    sandbox_message_id uuid        not null,
    received_at        timestamptz not null default clock_timestamp(),
    internet_id        text,
    helo               text        not null,
    mail_from          text        not null,
    rcpt_to            text[]      not null,
    raw                bytea       not null,
    constraint sandbox_messages_pkey primary key (sandbox_message_id)
);
create index sandbox_messages_internet_id_idx on sandbox_messages (internet_id);
