-- Branches of a partition's map. The lineage is `branch:revision` of each layer below, commas between.
CREATE TABLE branch (
    partition bigint NOT NULL,
    branch bigint NOT NULL,
    head bigint NOT NULL,
    lineage text COLLATE "C" NOT NULL,
    ended bigint,
    -- States from here on can be read whole, pinned or not.
    floor bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (partition, branch)
) WITH (fillfactor = 50);

-- A database's main is as old as its last commit: what it did on its own wasn't kept apart so far.
INSERT INTO branch (partition, branch, head, lineage, floor)
SELECT id, 0, last_revision, '', horizon FROM partition WHERE id >> 60 = 4;

-- What keeps states of branches from being pruned.
CREATE TABLE pin (
    partition bigint NOT NULL,
    branch bigint NOT NULL,
    revision bigint NOT NULL,
    owner bigint NOT NULL,
    PRIMARY KEY (partition, branch, revision, owner)
);

CREATE INDEX pin_owner ON pin (owner);

-- Keys that got an entry where there was none: the history holds what ended, this what began.
CREATE TABLE birth (
    partition bigint NOT NULL,
    branch bigint NOT NULL,
    revision bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    class smallint NOT NULL,
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (partition, branch, revision, scope, class, name)
);

CREATE INDEX history_end_of_branch ON history (partition, branch, to_rev) WHERE branch <> 0;

CREATE INDEX change_of_branch ON change (partition, branch, revision, place) WHERE branch <> 0;
