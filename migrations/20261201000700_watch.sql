-- Recipients of whom nothing is known are few, wait for a person, and are counted often.
create index recipients_unknown_idx on recipients (message_id) where state = 'unknown';
