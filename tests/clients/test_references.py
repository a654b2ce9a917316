"""Branches, tags and merges of a database, through PyIceberg and DuckDB, which know nothing of them."""

import threading

import duckdb
import pytest
from harness import SCHEMA, duckdb_attached, duckdb_ids, ids, pyiceberg, rows
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchTableError
from pyiceberg.types import LongType
from support.server import Server
from trees import Trees, branch, outcomes, refusal, state_of, tag

EXPERIMENT = "training$branch_experiment"
FROZEN = "training$tag_train_v1"


@pytest.fixture
def training(server: Server):
    """`training` with its two tables, on one server."""
    return populated(server, server)


@pytest.fixture
def training_at_two_ends(two_ends):
    """`training` with its two tables: on SQLite, and through two servers on PostgreSQL in both locking modes."""
    return populated(*two_ends)


def populated(one: Server, other: Server):
    """`features`, which PyIceberg wrote through one server, and `labels`, which DuckDB wrote through the other."""
    catalog, session = pyiceberg(one.iceberg), duckdb_attached(other.iceberg)
    catalog.create_namespace("training")
    catalog.create_table("training.features", SCHEMA).append(rows(1, 2))
    session.execute("CREATE TABLE lake.training.labels AS SELECT range AS id FROM range(1, 3)")
    return catalog, session, Trees(one, "training"), Trees(other, "training")


def test_an_experiment_is_frozen_merged_and_continued(training_at_two_ends):
    catalog, session, trees, trees_of_the_other = training_at_two_ends
    assert trees.branch("experiment")["type"] == "BRANCH"

    # Both clients read and write both tables on the branch; main sees nothing of it.
    on_branch = catalog.load_table(f"{EXPERIMENT}.features")
    on_branch.append(rows(3))
    session.execute(f'INSERT INTO lake."{EXPERIMENT}".features VALUES (4, \'from duckdb\')')
    session.execute(f'DELETE FROM lake."{EXPERIMENT}".labels WHERE id = 1')
    catalog.load_table(f"{EXPERIMENT}.labels").append(rows(30).select(["id"]))
    assert ids(on_branch) == duckdb_ids(session, f'lake."{EXPERIMENT}".features') == [1, 2, 3, 4]
    assert duckdb_ids(session, f'lake."{EXPERIMENT}".labels') == [2, 30]
    assert ids(catalog.load_table("training.features")) == duckdb_ids(session, "lake.training.features") == [1, 2]
    assert ids(catalog.load_table("training.labels")) == duckdb_ids(session, "lake.training.labels") == [1, 2]

    # A tag keeps data and schemas, however far the branch goes on.
    assert trees_of_the_other.tag("train_v1", "experiment")["type"] == "TAG"
    assert trees.names() == {"experiment": "BRANCH", "main": "BRANCH", "train_v1": "TAG"}
    on_branch.refresh().append(rows(5))
    with catalog.load_table(f"{EXPERIMENT}.labels").update_schema() as schema:
        schema.add_column("weight", LongType())
    session.execute(f'DROP TABLE lake."{EXPERIMENT}".features')
    session.execute(f'CREATE TABLE lake."{EXPERIMENT}".features AS SELECT 100 AS id, 7 AS score')
    for _ in range(2):
        assert ids(catalog.load_table(f"{FROZEN}.features")) == [1, 2, 3, 4]
        assert duckdb_ids(session, f'lake."{FROZEN}".features') == [1, 2, 3, 4]
        assert catalog.load_table(f"{FROZEN}.labels").schema().column_names == ["id"]
        assert session.execute(f'FROM lake."{FROZEN}".labels ORDER BY id').fetchall() == [(2,), (30,)]

    # What was frozen is merged, not what the branch shows by now.
    merged = trees.merge(tag("train_v1"))
    assert outcomes(merged) == {"features": "TAKEN", "labels": "TAKEN"}
    assert merged["fastForward"]
    assert duckdb_ids(session, "lake.training.features") == ids(catalog.load_table("training.features")) == [1, 2, 3, 4]
    assert session.execute("FROM lake.training.labels ORDER BY id").fetchall() == [(2,), (30,)]

    # Both sides go on, and neither changes the other or the tag.
    session.execute("INSERT INTO lake.training.features VALUES (6, 'on main')")
    catalog.load_table(f"{EXPERIMENT}.labels").append(rows(31).select(["id"]))
    assert ids(catalog.load_table("training.features")) == [1, 2, 3, 4, 6]
    assert duckdb_ids(session, f'lake."{EXPERIMENT}".features') == [100]
    assert duckdb_ids(session, "lake.training.labels") == [2, 30]
    assert duckdb_ids(session, f'lake."{EXPERIMENT}".labels') == [2, 30, 31]
    assert ids(catalog.load_table(f"{FROZEN}.features")) == [1, 2, 3, 4]

    # The same state merged again is nothing.
    before = trees.revision("main")
    assert trees_of_the_other.merge(tag("train_v1"))["tables"] == []
    assert trees.revision("main") == before

    # The branch itself: `features` changed on both sides, so somebody has to say what it is to be.
    status, error = refusal(lambda: trees.merge(branch("experiment")))
    assert status == 409 and {one["table"] for one in error["details"]["conflicts"]} == {"features"}
    assert trees.revision("main") == before, "nothing is merged if something can't be"
    merged = trees.merge(branch("experiment"), modes={"features": "DROP"})
    assert outcomes(merged) == {"features": "DROPPED", "labels": "TAKEN"}
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 3, 4, 6]
    assert duckdb_ids(session, "lake.training.labels") == [2, 30, 31]
    assert outcomes(trees.merge(branch("experiment"))) == {}, "what was left out doesn't come back"
    session.execute(f'INSERT INTO lake."{EXPERIMENT}".features VALUES (101, 8)')
    assert outcomes(trees.merge(branch("experiment"), modes={"features": "FORCE"})) == {"features": "FORCED"}
    assert session.execute("FROM lake.training.features ORDER BY id").fetchall() == [(100, 7), (101, 8)]

    # What the references held is theirs no longer, and main has what was merged.
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("training")
    assert refusal(lambda: trees.delete("train_v1", type="BRANCH"))[0] == 409
    trees.delete("train_v1", type="TAG")
    trees_of_the_other.delete("experiment")
    assert refusal(lambda: trees.delete("main"))[0] == 409
    assert trees.names() == {"main": "BRANCH"}
    for gone in (EXPERIMENT, FROZEN):
        with pytest.raises(NoSuchTableError):
            catalog.load_table(f"{gone}.features")
        with pytest.raises(duckdb.CatalogException):
            duckdb_attached(trees.server.iceberg).execute(f'FROM lake."{gone}".features')
    assert duckdb_ids(session, "lake.training.features") == [100, 101]
    assert duckdb_ids(session, "lake.training.labels") == [2, 30, 31]


def test_ten_tables_are_written_audited_and_published_at_once(training):
    catalog, session, trees, _ = training
    names = [f"part_{number}" for number in range(10)]
    staging = "training$branch_audit"
    trees.branch("audit")
    reader = Reader(trees.server, names)

    def publish(expected: str) -> None:
        reviewed = trees.revision("audit")
        assert outcomes(trees.merge(branch("audit", reviewed))) == dict.fromkeys(names, expected)
        reader.wait_for(session.execute(f'SELECT max(id) FROM lake."{staging}".part_0').fetchone()[0])

    with reader:
        for number, name in enumerate(names):
            if number % 2:
                catalog.create_table(f"{staging}.{name}", SCHEMA).append(rows(1))
            else:
                session.execute(f"CREATE TABLE lake.\"{staging}\".{name} AS SELECT 1::BIGINT AS id, 'one' AS word")
        session.execute(f"INSERT INTO lake.\"{staging}\".part_6 VALUES (-1, 'wrong')")
        audit = " UNION ALL ".join(f'SELECT id FROM lake."{staging}".{name}' for name in names)
        assert session.execute(f"SELECT count(*) FROM ({audit}) WHERE id < 0").fetchone() == (1,), "the audit finds it"
        session.execute(f'DELETE FROM lake."{staging}".part_6 WHERE id < 0')
        assert session.execute(f"SELECT count(*) FROM ({audit}) WHERE id < 0").fetchone() == (0,)
        publish("TAKEN")

        session.execute("BEGIN")
        for name in names:
            session.execute(f"INSERT INTO lake.\"{staging}\".{name} VALUES (2, 'two')")
        session.execute("COMMIT")
        publish("TAKEN")
    assert reader.seen == [0, 1, 2], "nothing, then the first ten, then all ten changed; never a mixture"


def test_a_reader_notices_tables_that_are_published_one_by_one(training):
    catalog, _, trees, _ = training
    with pytest.raises(AssertionError, match="only some are there"):
        with Reader(trees.server, ["part_0", "part_1"]) as reader:
            catalog.create_table("training.part_0", SCHEMA).append(rows(1))
            reader.wait_for(1)


class Reader:
    """Somebody who reads all the tables on `main`, over and over, while others publish.

    `seen` holds each state once, by the highest id in its tables; 0 where there are none. A state with only some of
    the tables, or with different ids in them, is a failure, which whoever waits for the reader gets.
    """

    def __init__(self, server: Server, names: list[str]) -> None:
        self.server, self.names = server, names
        self.seen: list[int] = []
        self.ended = False
        self.failure: BaseException | None = None
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Reader":
        self.thread.start()
        self.wait_for(0)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self.thread.join()
        if self.failure:
            raise self.failure

    def wait_for(self, state: int) -> None:
        with self.news:
            arrived = self.news.wait_for(lambda: state in self.seen or self.failure, timeout=60)
        assert arrived, f"no reader saw state {state}"
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        catalog, session = pyiceberg(self.server.iceberg), duckdb_attached(self.server.iceberg)
        try:
            while not self.ended:
                self._note(self._look(catalog, session))
        except BaseException as failure:
            with self.news:
                self.failure = failure
                self.news.notify_all()

    def _look(self, catalog, session) -> int:
        listed = {name for _, name in catalog.list_tables("training")} & set(self.names)
        assert listed in (set(), set(self.names)), f"only some are there: {listed}"
        if not listed:
            return 0
        pinned = f"training$tag_rev-{state_of(self.server, 'training', self.names[0])}"
        highest = " UNION ".join(f'SELECT max(id) FROM lake."{pinned}".{name}' for name in self.names)
        [(state,)] = session.execute(highest).fetchall()
        return state

    def _note(self, state: int) -> None:
        if state not in self.seen:
            with self.news:
                self.seen.append(state)
                self.news.notify_all()


def test_two_tables_are_read_as_one_state_while_main_moves(training):
    catalog, session, trees, _ = training

    def write_pair(id: int) -> None:
        session.execute("BEGIN")
        session.execute(f"INSERT INTO lake.training.features VALUES ({id}, 'pair')")
        session.execute(f"INSERT INTO lake.training.labels VALUES ({id})")
        session.execute("COMMIT")

    pinned = f"training$tag_rev-{state_of(trees.server, 'training', 'features')}"
    other = duckdb_attached(trees.server.iceberg)
    unpinned_first = ids(catalog.load_table("training.features"))
    first = ids(catalog.load_table(f"{pinned}.features"))
    write_pair(3)
    assert ids(catalog.load_table(f"{pinned}.labels")) == first == [1, 2]
    write_pair(4)
    assert duckdb_ids(other, f'lake."{pinned}".labels') == duckdb_ids(other, f'lake."{pinned}".features') == first
    assert ids(catalog.load_table("training.labels")) != unpinned_first, "without the pin, the pair is of two states"

    # A pin of one state is a state of the branch that it was taken from, and holds while that one moves too.
    trees.branch("experiment")
    on_branch = f"training$tag_rev-{state_of(trees.server, EXPERIMENT, 'labels')}"
    catalog.load_table(f"{EXPERIMENT}.labels").append(rows(50).select(["id"]))
    write_pair(5)
    assert ids(catalog.load_table(f"{on_branch}.labels")) == ids(catalog.load_table(f"{on_branch}.features")) == [1, 2, 3, 4]


def test_a_state_is_named_alike_by_every_server_and_changes_only_with_its_own_branch(training_at_two_ends):
    catalog, session, trees, trees_of_the_other = training_at_two_ends
    trees.branch("experiment")
    main, experiment = trees.revision("main"), trees.revision("experiment")
    catalog.load_table(f"{EXPERIMENT}.features").append(rows(3))
    assert trees.revision("main") == trees_of_the_other.revision("main") == main
    assert state_of(trees_of_the_other.server, "training", "features") == main
    assert trees_of_the_other.revision("experiment") == state_of(trees.server, EXPERIMENT, "labels") != experiment


def test_exactly_the_reviewed_state_is_merged_though_the_branch_moved_on(training):
    catalog, session, trees, _ = training
    trees.branch("experiment")
    catalog.load_table(f"{EXPERIMENT}.features").append(rows(3))
    reviewed = trees.revision("experiment")
    session.execute(f"INSERT INTO lake.\"{EXPERIMENT}\".features VALUES (4, 'after the review')")
    trees.merge(branch("experiment", reviewed))
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 3]
    assert ids(catalog.load_table(f"{EXPERIMENT}.features")) == [1, 2, 3, 4]
    trees.merge(branch("experiment"))
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 3, 4]


def test_a_stale_expectation_is_refused_with_the_current_revision_and_changes_nothing(training):
    catalog, session, trees, _ = training
    trees.branch("experiment")
    catalog.load_table(f"{EXPERIMENT}.features").append(rows(3))
    reviewed = {name: trees.revision(name) for name in ("main", "experiment")}
    session.execute("INSERT INTO lake.training.features VALUES (4, 'arrived meanwhile')")
    catalog.load_table(f"{EXPERIMENT}.labels").append(rows(30).select(["id"]))
    now = {name: trees.revision(name) for name in reviewed}
    modes = {"features": "FORCE"}
    stale = {
        "main": lambda: trees.merge(branch("experiment"), modes=modes, expectedRevision=reviewed["main"]),
        "experiment": lambda: trees.delete("experiment", expectedRevision=reviewed["experiment"]),
    }
    for name, call in stale.items():
        status, error = refusal(call)
        assert status == 409 and error["details"]["currentRevision"] == now[name] and now[name] in error["message"]
    status, error = refusal(lambda: trees.tag("train_v1", "experiment", expectedRevision=reviewed["experiment"]))
    assert status == 409 and error["details"]["currentRevision"] == now["experiment"]
    assert trees.names() == {"experiment": "BRANCH", "main": "BRANCH"}
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 4]
    trees.merge(branch("experiment"), modes=modes, expectedRevision=now["main"])
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 3]
    trees.delete("experiment", expectedRevision=now["experiment"])


def test_a_dry_run_says_what_a_merge_would_do_and_does_nothing(training):
    catalog, session, trees, _ = training
    trees.branch("experiment")
    session.execute(f'DROP TABLE lake."{EXPERIMENT}".labels')
    catalog.create_table(f"{EXPERIMENT}.scores", SCHEMA)
    before = trees.revision("main")
    assert outcomes(trees.merge(branch("experiment"), dryRun=True)) == {"labels": "TAKEN", "scores": "TAKEN"}
    assert trees.revision("main") == before
    assert catalog.list_tables("training") == [("training", "features"), ("training", "labels")]
    assert outcomes(trees.merge(branch("experiment"))) == {"labels": "TAKEN", "scores": "TAKEN"}
    assert catalog.list_tables("training") == [("training", "features"), ("training", "scores")]


def test_a_retried_merge_answers_as_the_first_did_though_the_branch_moved_on(training_at_two_ends):
    catalog, session, trees, trees_of_the_other = training_at_two_ends
    trees.branch("experiment")
    catalog.load_table(f"{EXPERIMENT}.features").append(rows(3))
    request = {"source": branch("experiment")}

    def merge(through: Trees) -> dict:
        return through.server.call("POST", f"{trees.path}/main/merge", request, {"Idempotency-Key": "publish-1"})

    first = merge(trees)
    catalog.load_table(f"{EXPERIMENT}.features").append(rows(4))
    assert merge(trees_of_the_other) == first
    assert duckdb_ids(session, "lake.training.features") == [1, 2, 3]
