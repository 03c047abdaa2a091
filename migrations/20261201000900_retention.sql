-- What is kept for a time only, and what became of each run that forgets it.

-- The least UUIDv7 of a moment: rows whose key is below it are older (RFC 9562, section 5.7).
create function v7_floor(at timestamptz) returns uuid language sql immutable strict parallel safe as
$$ select (lpad(to_hex(greatest(extract(epoch from at) * 1000, 0)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

create table retention_runs (
    run_id     uuid        not null,
    trigger    text        not null,
    -- Who asked for it; null for one by the timetable.
    asked_by   text,
    state      text        not null,
    asked_at   timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at   timestamptz,
    -- What became of each class so far: name, rows forgotten, and the error that ended it.
    classes    jsonb       not null default '[]',
    constraint retention_runs_pkey primary key (run_id),
    constraint retention_runs_trigger_check check (trigger in ('scheduled', 'manual')),
    constraint retention_runs_state_check check (state in (
        'waiting', 'running', 'done', 'failed', 'stopped', 'interrupted'
    )),
    constraint retention_runs_ended_check check ((ended_at is null) = (state in ('waiting', 'running')))
);
-- One at a time, over all processes.
create unique index retention_runs_open_key on retention_runs ((true)) where state in ('waiting', 'running');
