-- Templates of messages. A version never changes: what a client asks for by number stays what it was.

create table templates (
    template_id     uuid        not null,
    -- The word by which clients name it; free again once the template is archived.
    slug            text        not null,
    name            text        not null,
    current_version integer     not null,
    created_at      timestamptz not null default clock_timestamp(),
    updated_at      timestamptz not null default clock_timestamp(),
    archived_at     timestamptz,
    constraint templates_pkey primary key (template_id),
    constraint templates_current_version_check check (current_version >= 1)
);
create unique index templates_slug_key on templates (slug) where archived_at is null;

create table template_versions (
    template_id uuid        not null,
    version     integer     not null,
    subject     text        not null,
    html        text,
    text        text,
    created_at  timestamptz not null default clock_timestamp(),
    -- As in the audit: key:<prefix>, or command line.
    created_by  text        not null,
    constraint template_versions_pkey primary key (template_id, version),
    constraint template_versions_template_fkey foreign key (template_id) references templates on delete cascade,
    constraint template_versions_version_check check (version >= 1),
    constraint template_versions_body_check check (html is not null or text is not null)
);
