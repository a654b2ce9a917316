"""Three servers on one PostgreSQL behave as one."""

import json
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from threading import Timer
from urllib.parse import urlencode

import pytest
from harness import SCHEMA, ids, pyiceberg, rows
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchTableError
from support.server import Server, binary


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


def test_a_reader_of_the_change_feed_misses_nothing_and_meets_nothing_twice(
    three_servers: list[Server], tmp_path: Path
):
    def create_namespaces(writer: Server, numbers: range) -> list[str]:
        names = [f"made_{writer.port}_{number}" for number in numbers]
        for name in names:
            writer.call("POST", "/iceberg/v1/lake/namespaces", {"namespace": [name]})
        return names

    def write_at_all_servers(numbers: range) -> list[str]:
        writing = [pool.submit(create_namespaces, server, numbers) for server in three_servers]
        return [name for future in writing for name in future.result()]

    follower = Follower(three_servers[2], tmp_path)
    with ThreadPoolExecutor(len(three_servers) + 1) as pool:
        made = pool.submit(write_at_all_servers, range(60))
        for _ in range(3):
            follower.stop_after_more(20)
        made = made.result()
        # The last stop may have come when all was followed already: what follows now came while nobody did.
        made += write_at_all_servers(range(60, 70))
    everything = whole_feed(three_servers[0])
    follower.follow_until(lambda followed: len(followed) >= len(everything))

    followed = follower.followed
    places = [place(change) for change in followed]
    assert len(set(places)) == len(places), "a change came twice"
    assert sorted(places) == sorted(place(change) for change in everything), "a change was missed"
    followed_names = [change["key"]["name"] for change in followed]
    assert sorted(name for name in followed_names if name.startswith("made_")) == sorted(made)


class Follower:
    """`anabranch changes --follow`, which may be ended and started again: it remembers where it was."""

    def __init__(self, server: Server, folder: Path) -> None:
        cursor = str(folder / "cursor")
        self.command = [str(binary()), "changes", "--follow", "--json", "--remember", cursor, "--server", server.url]
        self.followed: list[dict] = []

    def stop_after_more(self, count: int) -> None:
        """Follows until so many more changes came, then ends the process as Ctrl-C does."""
        wanted = len(self.followed) + count
        self.follow_until(lambda followed: len(followed) >= wanted)

    def follow_until(self, is_enough: Callable[[list[dict]], bool]) -> None:
        process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        watchdog = Timer(60, process.kill)
        watchdog.start()
        try:
            while not is_enough(self.followed):
                line = process.stdout.readline()
                assert line, f"the follower ended after {len(self.followed)} changes"
                self._take(line)
            process.send_signal(signal.SIGINT)
            # What it printed before it noticed.
            for line in process.stdout:
                self._take(line)
            assert process.wait() == 0
        finally:
            watchdog.cancel()
            process.kill()
            process.wait()
            process.stdout.close()

    def _take(self, line: str) -> None:
        printed = json.loads(line)
        if "key" in printed:
            self.followed.append(printed)


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
