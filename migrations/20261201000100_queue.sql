-- Durable work. The page that explains it is the documentation of `queue` and of `sending`.

-- A row is ready, leased, or gone; dead only for work that ended its process three times.
create table jobs (
    job_id       uuid        not null,
    kind         text        not null,
    lane         text        not null,
    priority     smallint    not null,
    state        text        not null default 'ready',
    due_at       timestamptz not null default clock_timestamp(),
    lease_id     uuid,
    leased_until timestamptz,
    leased_by    uuid,
    deaths       smallint    not null default 0,
    dead_reason  text,
    created_at   timestamptz not null default clock_timestamp(),
    constraint jobs_pkey primary key (job_id),
    constraint jobs_state_check check (state in ('ready', 'leased', 'dead')),
    constraint jobs_priority_check check (priority between 0 and 2),
    constraint jobs_lease_check check (
        (state = 'leased') = (lease_id is not null)
        and (lease_id is null) = (leased_until is null)
        and (lease_id is null) = (leased_by is null)
    ),
    constraint jobs_dead_check check ((state = 'dead') = (dead_reason is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
-- The claim walks one lane and one priority in order of due time; lanes are found by skipping along it.
create index jobs_ready_idx on jobs (kind, lane, priority, due_at) where state = 'ready';
create index jobs_leased_idx on jobs (leased_until) where state = 'leased';
-- Work whose process died with it twice is rare, and runs alone.
create index jobs_suspect_idx on jobs (kind, due_at) where state = 'ready' and deaths >= 2;

-- One running Postroom. A heartbeat that ended tells a dead owner from a slow one.
create table processes (
    process_id   uuid        not null,
    host         text        not null,
    pid          integer     not null,
    version      text        not null,
    started_at   timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    constraint processes_pkey primary key (process_id)
);

-- Periodic work: whoever holds the lease does the round.
create table chores (
    name         text        not null,
    lease_id     uuid,
    leased_until timestamptz,
    last_run_at  timestamptz,
    last_error   text,
    constraint chores_pkey primary key (name)
);

-- What an operator has stopped: everything, a relay, a sender domain, a recipient domain.
create table paused_scopes (
    scope      text        not null,
    value      text        not null default '',
    reason     text,
    paused_at  timestamptz not null default clock_timestamp(),
    paused_by  text        not null,
    constraint paused_scopes_pkey primary key (scope, value),
    constraint paused_scopes_scope_check check (scope in ('all', 'relay', 'sender_domain', 'recipient_domain'))
);
