-- The serial units. The guard is written by engines that lock by writing; here for one shape.
CREATE TABLE partition (
    id INTEGER PRIMARY KEY,
    parent INTEGER NOT NULL,
    state INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    last_commit BLOB NOT NULL,
    last_revision INTEGER NOT NULL,
    horizon INTEGER NOT NULL,
    guard INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX partition_parent ON partition (parent, id);

-- What stands now. Texts compare bytewise.
CREATE TABLE current (
    partition INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    scope TEXT NOT NULL,
    class INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    object INTEGER NOT NULL,
    version INTEGER NOT NULL,
    from_rev INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (partition, branch, scope, class, name)
) STRICT;

-- One live place per object and branch.
CREATE UNIQUE INDEX current_object ON current (branch, object);

-- Pages of one kind among many of another.
CREATE INDEX current_kind ON current (partition, branch, scope, class, kind, name);

-- Versions that ended.
CREATE TABLE history (
    partition INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    scope TEXT NOT NULL,
    class INTEGER NOT NULL,
    name TEXT NOT NULL,
    from_rev INTEGER NOT NULL,
    to_rev INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    object INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (partition, branch, scope, class, name, from_rev)
) STRICT;

CREATE INDEX history_end ON history (partition, to_rev);

-- The change log.
CREATE TABLE change (
    partition INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    place INTEGER NOT NULL,
    commit_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    action INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    scope TEXT NOT NULL,
    class INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    object INTEGER NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (partition, revision, place)
) STRICT;

CREATE TABLE operation (
    key TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    state INTEGER NOT NULL,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;

CREATE INDEX operation_expires ON operation (expires);

CREATE TABLE task (
    id BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until INTEGER
) STRICT;

CREATE INDEX task_due ON task (due);

-- The root: its own parent, and live for ever.
INSERT INTO partition (id, parent, state, clock, last_commit, last_revision, horizon)
VALUES (1152921504606846976, 1152921504606846976, 1, 0, zeroblob(16), 0, 0);
