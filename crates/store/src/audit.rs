//! The invariants of the store, each as a query that must return nothing.
//!
//! The SQL is what both engines understand; each row of an answer is one text that says what
//! breaks the invariant.

use crate::interface::Violation;

/// One invariant: its name, and the query that looks for what breaks it.
pub(crate) struct Invariant {
    pub name: &'static str,
    pub sql: &'static str,
}

impl Invariant {
    pub fn violated(&self, detail: String) -> Violation {
        Violation {
            invariant: self.name,
            detail,
        }
    }
}

// Numbers that stand in the queries: partition states 1 live, 2 dropped; classes 1 container,
// 2 table; kinds 1 metalake, 2 catalog, 3 namespace; `id >> 60` is a partition's kind, 1 root,
// 2 metalake, 3 catalog, 4 database.
pub(crate) const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "root-partition-lives",
        sql: "SELECT 'the root partition is missing, dropped or not its own parent' \
              WHERE NOT EXISTS (SELECT 1 FROM partition \
                  WHERE id = 1152921504606846976 AND parent = id AND state = 1)",
    },
    Invariant {
        name: "partition-hangs-below-its-parent-kind",
        sql: "SELECT 'partition ' || CAST(c.id AS text) || ' has parent ' || CAST(c.parent AS text) \
              FROM partition c LEFT JOIN partition p ON p.id = c.parent \
              WHERE c.id <> 1152921504606846976 \
                AND (p.id IS NULL OR (c.id >> 60) <> (p.id >> 60) + 1)",
    },
    Invariant {
        name: "live-partition-has-live-parent",
        sql: "SELECT 'partition ' || CAST(c.id AS text) || ' lives below the dropped ' \
                  || CAST(p.id AS text) \
              FROM partition c JOIN partition p ON p.id = c.parent \
              WHERE c.state = 1 AND p.state <> 1",
    },
    Invariant {
        name: "current-row-in-live-partition",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
              FROM current c LEFT JOIN partition p ON p.id = c.partition \
              WHERE p.id IS NULL OR (p.state <> 1 AND c.branch = 0)",
    },
    Invariant {
        name: "live-partition-has-its-container-entry",
        sql: "SELECT 'partition ' || CAST(p.id AS text) || ' has no entry in ' \
                  || CAST(p.parent AS text) \
              FROM partition p \
              WHERE p.state = 1 AND p.id <> 1152921504606846976 \
                AND NOT EXISTS (SELECT 1 FROM current c WHERE c.branch = 0 AND c.object = p.id \
                    AND c.partition = p.parent AND c.class = 1 AND c.scope = '' \
                    AND c.kind = (p.id >> 60) - 1)",
    },
    Invariant {
        name: "container-entry-has-its-partition",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' names partition ' || CAST(c.object AS text) \
              FROM current c LEFT JOIN partition p ON p.id = c.object \
              WHERE (c.kind IN (1, 2) OR (c.kind = 3 AND (c.partition >> 60) = 3)) \
                AND (p.id IS NULL OR p.state <> 1 OR p.parent <> c.partition \
                    OR (p.id >> 60) <> c.kind + 1)",
    },
    Invariant {
        name: "version-begins-within-the-clock",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' begins at ' || CAST(c.from_rev AS text) \
              FROM current c JOIN partition p ON p.id = c.partition WHERE c.from_rev > p.clock \
              UNION ALL \
              SELECT 'ended version of ' || h.name || ' in partition ' \
                  || CAST(h.partition AS text) || ' ends at ' || CAST(h.to_rev AS text) \
              FROM history h JOIN partition p ON p.id = h.partition WHERE h.to_rev > p.clock",
    },
    Invariant {
        name: "history-row-in-known-partition",
        sql: "SELECT 'ended version of ' || h.name || ' in partition ' \
                  || CAST(h.partition AS text) \
              FROM history h WHERE NOT EXISTS (SELECT 1 FROM partition p WHERE p.id = h.partition)",
    },
    Invariant {
        name: "history-interval-not-empty",
        sql: "SELECT 'ended version of ' || name || ' in partition ' || CAST(partition AS text) \
                  || ' from ' || CAST(from_rev AS text) || ' to ' || CAST(to_rev AS text) \
              FROM history WHERE from_rev >= to_rev",
    },
    Invariant {
        name: "history-intervals-apart",
        sql: "SELECT 'versions of ' || name || ' in partition ' || CAST(partition AS text) \
                  || ' overlap at ' || CAST(next_from AS text) \
              FROM (SELECT name, partition, to_rev, \
                        LEAD(from_rev) OVER (PARTITION BY partition, branch, scope, class, name \
                            ORDER BY from_rev) AS next_from FROM history) v \
              WHERE next_from < to_rev",
    },
    Invariant {
        name: "history-before-the-current-version",
        sql: "SELECT 'ended version of ' || h.name || ' in partition ' \
                  || CAST(h.partition AS text) || ' reaches into the current one' \
              FROM history h JOIN current c ON c.partition = h.partition \
                  AND c.branch = h.branch AND c.scope = h.scope AND c.class = h.class \
                  AND c.name = h.name \
              WHERE h.to_rev > c.from_rev",
    },
    Invariant {
        name: "current-version-is-the-last-change",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' begins at ' || CAST(c.from_rev AS text) \
                  || ', which is not the last change of its key' \
              FROM current c JOIN partition p ON p.id = c.partition \
              LEFT JOIN (SELECT partition, branch, scope, class, name, max(revision) AS revision \
                  FROM change GROUP BY partition, branch, scope, class, name) l \
                  ON l.partition = c.partition AND l.branch = c.branch AND l.scope = c.scope \
                  AND l.class = c.class AND l.name = c.name \
              WHERE (l.revision IS NULL AND c.from_rev >= p.horizon) OR l.revision <> c.from_rev",
    },
    Invariant {
        name: "current-version-names-the-changed-object",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' is object ' || CAST(c.object AS text) || ', its change names another' \
              FROM current c \
              WHERE c.kind <> 40 \
                AND EXISTS (SELECT 1 FROM change l WHERE l.partition = c.partition \
                      AND l.revision = c.from_rev AND l.branch = c.branch AND l.scope = c.scope \
                      AND l.class = c.class AND l.name = c.name) \
                AND NOT EXISTS (SELECT 1 FROM change l WHERE l.partition = c.partition \
                      AND l.revision = c.from_rev AND l.branch = c.branch AND l.scope = c.scope \
                      AND l.class = c.class AND l.name = c.name AND l.object = c.object)",
    },
    Invariant {
        name: "last-commit-in-the-log",
        sql: "SELECT 'partition ' || CAST(p.id AS text) || ' names a last commit at ' \
                  || CAST(p.last_revision AS text) || ' that its log does not hold' \
              FROM partition p \
              WHERE p.last_revision > 0 AND p.last_revision >= p.horizon \
                AND NOT EXISTS (SELECT 1 FROM change l WHERE l.partition = p.id \
                    AND l.revision = p.last_revision AND l.commit_id = p.last_commit)",
    },
    Invariant {
        name: "change-within-the-last-commit",
        sql: "SELECT 'change of ' || l.name || ' in partition ' || CAST(l.partition AS text) \
                  || ' at ' || CAST(l.revision AS text) \
              FROM change l LEFT JOIN partition p ON p.id = l.partition \
              WHERE p.id IS NULL OR l.revision > p.last_revision",
    },
    Invariant {
        name: "scope-has-its-namespaces",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' stands in a scope without its namespace' \
              FROM current c \
              WHERE c.branch = 0 AND c.scope <> '' AND NOT EXISTS (SELECT 1 FROM current n \
                  WHERE n.partition = c.partition AND n.branch = c.branch AND n.class = 1 \
                    AND n.kind = 3 \
                    AND CASE WHEN n.scope = '' THEN n.name ELSE n.scope || '\u{1f}' || n.name END \
                        = c.scope)",
    },
    Invariant {
        name: "object-in-one-place",
        sql: "SELECT 'object ' || CAST(object AS text) || ' on branch ' || CAST(branch AS text) \
                  || ' stands in ' || CAST(count(*) AS text) || ' places' \
              FROM current GROUP BY branch, object HAVING count(*) > 1",
    },
    Invariant {
        name: "entry-on-a-known-branch",
        sql: "SELECT 'entry ' || c.name || ' in partition ' || CAST(c.partition AS text) \
                  || ' stands on branch ' || CAST(c.branch AS text) || ', which has no row' \
              FROM current c WHERE c.branch <> 0 AND NOT EXISTS (SELECT 1 FROM branch b \
                  WHERE b.partition = c.partition AND b.branch = c.branch)",
    },
    Invariant {
        name: "head-behind-its-entries",
        sql: "SELECT 'branch ' || CAST(b.branch AS text) || ' of partition ' \
                  || CAST(b.partition AS text) || ' has head ' || CAST(b.head AS text) \
                  || ', its entry ' || c.name || ' is younger' \
              FROM branch b JOIN current c ON c.partition = b.partition AND c.branch = b.branch \
              WHERE c.class IN (1, 2, 5) AND c.from_rev > b.head \
              UNION ALL \
              SELECT 'branch ' || CAST(b.branch AS text) || ' of partition ' \
                  || CAST(b.partition AS text) || ' has head ' || CAST(b.head AS text) \
                  || ' above the clock' \
              FROM branch b JOIN partition p ON p.id = b.partition WHERE b.head > p.clock",
    },
    Invariant {
        name: "main-has-no-lineage",
        sql: "SELECT 'branch ' || CAST(branch AS text) || ' of partition ' \
                  || CAST(partition AS text) || ' has lineage ' || lineage FROM branch \
              WHERE (branch = 0) <> (lineage = '') OR (branch = 0 AND ended IS NOT NULL)",
    },
    Invariant {
        name: "pin-on-a-known-branch",
        sql: "SELECT 'pin of branch ' || CAST(p.branch AS text) || ' in partition ' \
                  || CAST(p.partition AS text) \
              FROM pin p WHERE p.branch <> 0 AND NOT EXISTS (SELECT 1 FROM branch b \
                  WHERE b.partition = p.partition AND b.branch = p.branch)",
    },
    Invariant {
        name: "class-fits-kind",
        sql: "SELECT 'entry ' || name || ' in partition ' || CAST(partition AS text) \
                  || ' has class ' || CAST(class AS text) || ' and kind ' || CAST(kind AS text) \
              FROM current WHERE class NOT IN (1, 2, 3, 4, 5, 6) \
                  OR (kind IN (1, 2, 3) AND class <> 1) OR (kind IN (10, 11) AND class <> 2) \
                  OR (kind = 20) <> (class = 3) OR (kind IN (30, 31)) <> (class = 4) \
                  OR (kind = 32) <> (class = 5) OR (kind = 33) <> (class = 6) \
                  OR (kind = 33 AND branch = 0) \
                  OR (kind = 40 AND (class NOT IN (1, 2) OR branch = 0))",
    },
    Invariant {
        name: "horizon-within-the-clock",
        sql: "SELECT 'partition ' || CAST(id AS text) || ' has horizon ' \
                  || CAST(horizon AS text) || ' above its clock ' || CAST(clock AS text) \
              FROM partition WHERE horizon > clock OR last_revision > clock",
    },
    Invariant {
        name: "change-places-dense",
        sql: "SELECT 'changes in partition ' || CAST(l.partition AS text) || ' at ' \
                  || CAST(l.revision AS text) || ' have places with gaps' \
              FROM change l JOIN partition p ON p.id = l.partition \
              WHERE l.revision >= p.horizon \
              GROUP BY l.partition, l.revision \
              HAVING min(l.place) <> 0 OR max(l.place) <> count(*) - 1",
    },
    Invariant {
        name: "one-commit-per-revision",
        sql: "SELECT 'changes in partition ' || CAST(partition AS text) || ' at ' \
                  || CAST(revision AS text) || ' carry several commits' \
              FROM change GROUP BY partition, revision HAVING count(DISTINCT commit_id) > 1",
    },
    Invariant {
        name: "operation-well-formed",
        sql: "SELECT 'operation ' || key FROM operation \
              WHERE key = '' OR state NOT IN (1, 2) OR expires < at",
    },
    Invariant {
        name: "task-well-formed",
        sql: "SELECT 'task of kind ' || kind || ' due at ' || CAST(due AS text) FROM task \
              WHERE kind = '' OR attempts < 0 \
                 OR (lease_owner IS NULL) <> (lease_until IS NULL)",
    },
];
