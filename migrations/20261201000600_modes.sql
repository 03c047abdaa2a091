-- Ways in which a message does not leave, and what remains of one whose content was erased.

alter table api_keys
    add column mode text not null default 'live',
    add constraint api_keys_mode_check check (mode in ('live', 'capture'));

alter table messages
    -- live: through relays. capture: into the sandbox. test: to test addresses only, through nothing.
    add column mode text not null default 'live',
    -- The body has octets over 127: only a server with 8BITMIME can take it.
    add column eight_bit boolean not null default false,
    -- Something of it was erased: it is never sent again.
    add column erased_at timestamptz,
    add constraint messages_mode_check check (mode in ('live', 'capture', 'test'));

-- What an erased address is replaced by is made of it and of this.
insert into installation (name, value)
values ('erasure_salt', gen_random_uuid() || '/' || gen_random_uuid())
on conflict do nothing;
