"""Three servers on one PostgreSQL behave as one."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from urllib.parse import urlencode

import pytest
from harness import SCHEMA, ids, pyiceberg, rows
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchTableError
from support.server import Server


def test_what_one_server_did_the_next_one_shows_at_once(three_servers: list[Server]):
    catalogs = [pyiceberg(server.iceberg) for server in three_servers]
    in_turn = cycle(catalogs)
    for round in range(10):
        creator, reader, remover = next(in_turn), next(in_turn), next(in_turn)
        creator.create_namespace(f"sales_{round}")
        reader.create_table(f"sales_{round}.orders", SCHEMA)
        remover.load_table(f"sales_{round}.orders").append(rows(round))
        assert ids(creator.load_table(f"sales_{round}.orders")) == [round]
        reader.rename_table(f"sales_{round}.orders", f"sales_{round}.bookings")
        with pytest.raises(NamespaceNotEmptyError):
            remover.drop_namespace(f"sales_{round}")
        creator.drop_table(f"sales_{round}.bookings")
        with pytest.raises(NoSuchTableError):
            reader.load_table(f"sales_{round}.bookings")
        remover.drop_namespace(f"sales_{round}")
        next(in_turn)
    assert [catalog.list_namespaces() for catalog in catalogs] == [[], [], []]


def test_of_many_creates_of_one_name_at_all_servers_one_succeeds(three_servers: list[Server]):
    catalogs = [pyiceberg(server.iceberg) for server in three_servers] * 2

    def create(catalog) -> bool:
        try:
            catalog.create_namespace("sales")
            return True
        except NamespaceAlreadyExistsError:
            return False

    with ThreadPoolExecutor(len(catalogs)) as pool:
        assert sum(pool.map(create, catalogs)) == 1


def test_appends_to_one_table_through_all_servers_lose_nothing(three_servers: list[Server]):
    catalogs = [pyiceberg(server.iceberg) for server in three_servers]
    catalogs[0].create_namespace("sales")
    catalogs[0].create_table("sales.orders", SCHEMA, properties={"commit.retry.num-retries": "50"})

    def append_ten(number: int) -> None:
        table = catalogs[number].load_table("sales.orders")
        for turn in range(10):
            table.append(rows(number * 10 + turn))

    with ThreadPoolExecutor(len(catalogs)) as pool:
        list(pool.map(append_ten, range(len(catalogs))))
    for catalog in catalogs:
        assert ids(catalog.load_table("sales.orders")) == list(range(30))


def test_a_reader_of_the_change_feed_misses_nothing_and_meets_nothing_twice(three_servers: list[Server]):
    *writers, reader = three_servers

    def create_namespaces(writer: Server) -> list[str]:
        names = [f"made_{writer.port}_{number}" for number in range(60)]
        for name in names:
            writer.call("POST", "/iceberg/v1/lake/namespaces", {"namespace": [name]})
        return names

    with ThreadPoolExecutor(len(writers)) as pool:
        writing = [pool.submit(create_namespaces, writer) for writer in writers]
        followed, after = [], None
        while True:
            writers_are_done = all(future.done() for future in writing)
            changes, after = read_feed(reader, after, limit=7)
            followed += changes
            if writers_are_done and not changes:
                break

    places = [place(change) for change in followed]
    assert len(set(places)) == len(places), "a change came twice"
    assert sorted(places) == sorted(place(change) for change in whole_feed(writers[0])), "a change was missed"
    keys = [json.dumps(change["key"]) for change in followed]
    for name in [name for future in writing for name in future.result()]:
        assert any(name in key for key in keys), f"no change names {name}"


def read_feed(server: Server, after: str | None, limit: int) -> tuple[list[dict], str]:
    """One page of the change feed, and where the next one begins."""
    query = {"limit": limit} | ({"after": after} if after else {})
    page = server.call("GET", f"/v1/changes?{urlencode(query)}")
    return page["changes"], page["next"]


def whole_feed(server: Server) -> list[dict]:
    found, after = [], None
    while (page := read_feed(server, after, limit=1000))[0]:
        changes, after = page
        found += changes
    return found


def place(change: dict) -> tuple[str, str]:
    """What tells a change from every other."""
    return str(change["partition"]), str(change["position"])
