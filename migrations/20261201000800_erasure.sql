-- What the sandbox keeps for an address is found by it.

create index sandbox_messages_rcpt_to_idx on sandbox_messages using gin (rcpt_to);
