-- Messages that wait for their time, are retried, and are found by what is known of them.

alter table messages
    -- When it is to go out, as asked for; null: at once.
    add column send_at     timestamptz,
    -- The lifetime as asked for, in seconds: it counts from the time of sending, which may change.
    add column ttl         integer,
    -- The retry window counts from here: the time of sending, or the last retry. Null: accept.
    add column window_from timestamptz,
    -- How often somebody asked for it to be tried again.
    add column retries     integer not null default 0,
    add constraint messages_ttl_check check (ttl > 0);

-- What is not settled is a small part of all; so is what was not sent.
create index messages_open_idx on messages (message_id desc) where settled_at is null;
create index messages_dead_idx on messages (message_id desc) where settled_at is not null and n_accepted = 0;
create index messages_outcome_idx on messages (outcome, message_id desc) where outcome <> 'sent';
create index messages_tags_idx on messages using gin (tags) where tags <> '{}';

-- What a batch was answered, so that its replay says the same. Null: the key stands for one message.
alter table idempotency_keys add column answer jsonb;
