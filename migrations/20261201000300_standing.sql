-- What all processes share about the way out: breakers, limits and what was spent of them.

alter table relays add column max_per_minute integer;
alter table relays add constraint relays_max_per_minute_check check (max_per_minute between 1 and 1000000);

-- A relay's circuit breaker. A process decides by its own faults; what it decides is a compare-and-swap
-- on `generation`, so that each change is made once, and told once. No row is a closed breaker.
create table relay_breakers (
    relay_id   uuid             not null,
    state      text             not null,
    generation bigint           not null,
    -- Open: until the first probe may go. Half-open: until the probe counts as lost.
    until      timestamptz,
    -- How long the present rest is, in seconds: the next one is longer.
    rest       double precision not null default 0,
    probe_by   uuid,
    -- The words it opened on.
    reason     text,
    text       text,
    opened_at  timestamptz,
    changed_at timestamptz      not null default clock_timestamp(),
    constraint relay_breakers_pkey primary key (relay_id),
    constraint relay_breakers_relay_fkey foreign key (relay_id) references relays on delete cascade,
    constraint relay_breakers_state_check check (state in ('closed', 'open', 'half_open')),
    constraint relay_breakers_until_check check ((state = 'closed') = (until is null)),
    constraint relay_breakers_probe_check check ((state = 'half_open') = (probe_by is not null))
);

-- At most so many recipients accepted by relays, in each minute, hour or day.
create table limits (
    limit_id   uuid        not null,
    scope      text        not null,
    -- A key's id, or a domain.
    value      text        not null,
    per        text        not null,
    most       integer     not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint limits_pkey primary key (limit_id),
    constraint limits_scope_key unique (scope, value, per),
    constraint limits_scope_check check (scope in ('key', 'sender_domain', 'recipient_domain')),
    constraint limits_per_check check (per in ('minute', 'hour', 'day')),
    constraint limits_most_check check (most between 1 and 100000000)
);

-- What was spent of a limit: counts in 61 slots, each a sixtieth of the time, the newest being `head`.
create table limit_spent (
    scope  text      not null,
    value  text      not null,
    per    text      not null,
    head   bigint    not null,
    counts integer[] not null,
    constraint limit_spent_pkey primary key (scope, value, per)
) with (fillfactor = 50);

alter table paused_scopes add column pause_id uuid not null default gen_random_uuid();
alter table paused_scopes add constraint paused_scopes_pause_id_key unique (pause_id);

-- Who waits for an operator or a limit is found at once when that changes.
create index recipients_held_idx on recipients (message_id)
    where reason in ('paused', 'limited') and state in ('queued', 'deferred');
