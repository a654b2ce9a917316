"""A server that stops answering without closing its connections must not stop the others."""

import signal
import time
from pathlib import Path

import pytest
from load import Load
from servers import LOCKING_MODES, postgres_store, serving
from support.postgres import query
from support.server import Server

# The session's idle timeout is 5 s; beside it there is the wait for the lock and the work itself.
SECONDS_FOR_THE_OTHERS = 10
FREEZES_AT_MOST = 60


@pytest.fixture(params=LOCKING_MODES)
def store(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> list[str]:
    return postgres_store(postgres_url, request.param, tmp_path)


def test_a_server_frozen_in_the_middle_of_a_commit_gives_its_partition_free(store: list[str], tmp_path: Path):
    database = store[1].split("?")[0]
    with serving(store, 2, tmp_path) as [frozen, other]:
        other.call("POST", "/iceberg/v1/lake/namespaces", {"namespace": ["sales"]})
        other.call("POST", "/iceberg/v1/lake/namespaces", {"namespace": ["sales", "inner"]})
        with Load(*[lambda id: set_property(frozen, f"frozen-{id}")] * 4) as load:
            load.until_acknowledged(20)
            freeze_in_a_transaction(frozen, database)
            try:
                began = time.monotonic()
                set_property(other, "other")
                waited = time.monotonic() - began
            finally:
                frozen.process.send_signal(signal.SIGCONT)
            assert waited < SECONDS_FOR_THE_OTHERS, f"the other server waited {waited:.1f} s"
            load.until_acknowledged(20)
        found = properties(other)
        assert "other" in found
        load.check([int(key.removeprefix("frozen-")) for key in found if key.startswith("frozen-")])


def freeze_in_a_transaction(server: Server, database: str) -> None:
    """Stops the process again and again, until it is caught while a transaction of its is open."""
    for _ in range(FREEZES_AT_MOST):
        server.process.send_signal(signal.SIGSTOP)
        if query(database, OPEN_TRANSACTIONS) != "0":
            return
        server.process.send_signal(signal.SIGCONT)
    pytest.fail(f"in {FREEZES_AT_MOST} tries the server was never caught in a transaction")


# Idle for a moment: what the server has sent is done, and nothing more comes from it.
OPEN_TRANSACTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle in transaction'
      AND state_change < clock_timestamp() - interval '20 milliseconds'
"""


def set_property(server: Server, key: str) -> None:
    path = "/iceberg/v1/lake/namespaces/sales%1Finner/properties"
    server.call("POST", path, {"removals": [], "updates": {key: "1"}})


def properties(server: Server) -> dict[str, str]:
    return server.call("GET", "/iceberg/v1/lake/namespaces/sales%1Finner")["properties"]
