-- The serial units. Updated by every commit: room for HOT updates.
-- The guard is written by engines that lock by writing.
CREATE TABLE partition (
    id bigint PRIMARY KEY,
    parent bigint NOT NULL,
    state smallint NOT NULL,
    clock bigint NOT NULL,
    last_commit uuid NOT NULL,
    last_revision bigint NOT NULL,
    horizon bigint NOT NULL,
    guard bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE INDEX partition_parent ON partition (parent, id);

-- What stands now. Texts compare bytewise.
CREATE TABLE current (
    partition bigint NOT NULL,
    branch bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    class smallint NOT NULL,
    name text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    object bigint NOT NULL,
    version bigint NOT NULL,
    from_rev bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (partition, branch, scope, class, name),
    -- One live place per object and branch; judged at the end of a statement, so that one
    -- statement may move objects between names.
    CONSTRAINT current_object UNIQUE (branch, object) DEFERRABLE INITIALLY IMMEDIATE
) WITH (fillfactor = 80);

-- Pages of one kind among many of another.
CREATE INDEX current_kind ON current (partition, branch, scope, class, kind, name);

-- Versions that ended.
CREATE TABLE history (
    partition bigint NOT NULL,
    branch bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    class smallint NOT NULL,
    name text COLLATE "C" NOT NULL,
    from_rev bigint NOT NULL,
    to_rev bigint NOT NULL,
    kind smallint NOT NULL,
    object bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (partition, branch, scope, class, name, from_rev)
);

CREATE INDEX history_end ON history (partition, to_rev);

-- The change log.
CREATE TABLE change (
    partition bigint NOT NULL,
    revision bigint NOT NULL,
    place integer NOT NULL,
    commit_id uuid NOT NULL,
    at bigint NOT NULL,
    principal text NOT NULL,
    action smallint NOT NULL,
    branch bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    class smallint NOT NULL,
    name text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    object bigint NOT NULL,
    before text,
    after text,
    PRIMARY KEY (partition, revision, place)
);

CREATE TABLE operation (
    key text COLLATE "C" PRIMARY KEY,
    principal text NOT NULL,
    fingerprint text NOT NULL,
    state smallint NOT NULL,
    answer text NOT NULL,
    at bigint NOT NULL,
    expires bigint NOT NULL
);

CREATE INDEX operation_expires ON operation (expires);

CREATE TABLE task (
    id uuid PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    body text NOT NULL,
    due bigint NOT NULL,
    attempts integer NOT NULL,
    lease_owner text,
    lease_until bigint
);

CREATE INDEX task_due ON task (due);

-- The root: its own parent, and live for ever.
INSERT INTO partition (id, parent, state, clock, last_commit, last_revision, horizon)
VALUES (1152921504606846976, 1152921504606846976, 1, 0,
        '00000000-0000-0000-0000-000000000000', 0, 0);
