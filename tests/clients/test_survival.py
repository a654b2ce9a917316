"""Servers and databases die under load: what was acknowledged is there, and the store is sound."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import SCHEMA, ids, pyiceberg, rows
from load import Load
from servers import LOCKING_MODES, postgres_store, serving
from support.postgres import Cluster
from support.server import Server

CRASHES = 5
WRITES_BETWEEN_CRASHES = 15


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of this test alone, which it may crash."""
    with Cluster() as cluster:
        yield cluster


def create_namespaces(server: Server) -> Callable[[int], None]:
    return lambda id: server.call("POST", "/iceberg/v1/lake/namespaces", {"namespace": [f"made_{id}"]})


def append_rows(server: Server) -> Callable[[int], None]:
    return lambda id: pyiceberg(server.iceberg).load_table("sales.orders").append(rows(id))


def create_orders(server: Server) -> None:
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA)


def check_all(server: Server, namespaces: Load, appends: Load) -> None:
    catalog = pyiceberg(server.iceberg)
    made = [name for (name,) in catalog.list_namespaces() if name.startswith("made_")]
    namespaces.check([int(name.removeprefix("made_")) for name in made])
    appends.check(ids(catalog.load_table("sales.orders")))


def test_a_killed_server_on_sqlite_loses_nothing_that_it_acknowledged(server: Server):
    create_orders(server)
    with Load(create_namespaces(server), create_namespaces(server)) as namespaces, Load(append_rows(server)) as appends:
        for _ in range(CRASHES):
            namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
            appends.until_acknowledged(1)
            server.kill()
            server.start()
        namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
    check_all(server, namespaces, appends)


def test_killed_servers_on_postgres_lose_nothing_and_hold_up_nobody(three_servers: list[Server]):
    first, second, third = three_servers
    create_orders(third)
    with (
        Load(*map(create_namespaces, (first, second, third))) as namespaces,
        Load(append_rows(first), append_rows(third)) as appends,
    ):
        for victim in [first, second] * (CRASHES // 2):
            namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
            appends.until_acknowledged(1)
            victim.kill()
            namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
            victim.start()
        namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
    check_all(third, namespaces, appends)


@pytest.mark.parametrize("locking_mode", LOCKING_MODES)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast shutdown", "crash"])
def test_servers_live_through_restarts_of_postgres(cluster: Cluster, tmp_path: Path, locking_mode, how):
    with serving(postgres_store(cluster.url, locking_mode, tmp_path), 2, tmp_path) as [first, second]:
        create_orders(first)
        with (
            Load(create_namespaces(first), create_namespaces(second)) as namespaces,
            Load(append_rows(first), append_rows(second)) as appends,
        ):
            for _ in range(CRASHES):
                namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
                appends.until_acknowledged(1)
                cluster.stop(how)
                cluster.start()
            namespaces.until_acknowledged(WRITES_BETWEEN_CRASHES)
        check_all(second, namespaces, appends)
