-- Who may come in. Every constraint has a name: the name is part of the code.

create table api_keys (
    api_key_id         uuid        not null,
    name               text        not null,
    -- The first eight characters of the key: public, finds the row. The key itself is never stored.
    prefix             text        not null,
    key_hash           text        not null,
    scopes             text[]      not null,
    suppression_exempt boolean     not null default false,
    -- Bindings: null is unrestricted, an empty list refuses everything.
    sender_domains     text[],
    sender_addresses   text[],
    networks           cidr[],
    on_unknown         text,
    expires_at         timestamptz,
    last_used_at       timestamptz,
    revoked_at         timestamptz,
    created_at         timestamptz not null default clock_timestamp(),
    constraint api_keys_pkey primary key (api_key_id),
    constraint api_keys_prefix_key unique (prefix),
    constraint api_keys_scopes_check check (scopes <@ array['send', 'read', 'admin'] and cardinality(scopes) > 0),
    constraint api_keys_on_unknown_check check (on_unknown in ('hold', 'resend'))
);

-- Who changed what, from where, before and after. Secrets are never part of either side.
create table audit (
    audit_id   uuid        not null,
    at         timestamptz not null default clock_timestamp(),
    actor      text        not null,
    api_key_id uuid,
    source     inet,
    request_id text,
    action     text        not null,
    subject    text        not null,
    subject_id text        not null,
    before     jsonb,
    after      jsonb,
    constraint audit_pkey primary key (audit_id)
);
create index audit_subject_idx on audit (subject, subject_id, audit_id);

-- The outbox: what happened, written in the transaction that made it so.
create table events (
    event_id   uuid        not null,
    at         timestamptz not null default clock_timestamp(),
    kind       text        not null,
    subject    text        not null,
    subject_id uuid        not null,
    data       jsonb       not null,
    constraint events_pkey primary key (event_id)
);
create index events_subject_idx on events (subject_id, event_id);

-- Facts about this installation; `secret_check` is a sealed known text, so that a wrong secret
-- key stops the start instead of showing up as unreadable passwords.
create table installation (
    name  text not null,
    value text not null,
    constraint installation_pkey primary key (name)
);
