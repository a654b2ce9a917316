"""A catalog on S3, played by moto on the loopback interface."""

import logging
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import boto3
import pytest
import requests
from harness import SCHEMA, ids, pyiceberg, rows
from moto.server import ThreadedMotoServer
from support.server import ROOT, Server
from support.waiting import wait_until

BUCKET = "warehouse"


@dataclass(frozen=True)
class Storage:
    settings: dict[str, str]
    client: object

    def keys(self, suffix: str) -> list[str]:
        listing = self.client.list_objects_v2(Bucket=BUCKET)
        return [entry["Key"] for entry in listing.get("Contents", []) if entry["Key"].endswith(suffix)]


@pytest.fixture
def storage() -> Iterator[Storage]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # It prints every request.
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    requests.post(f"{endpoint}/moto-api/reset", timeout=10)  # What it holds belongs to the process, not to one server.
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                          aws_access_key_id="key", aws_secret_access_key="secret")
    client.create_bucket(Bucket=BUCKET)
    yield Storage({
        "s3.endpoint": endpoint,
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
    }, client)
    moto.stop()


def test_every_call_that_the_server_makes_works_on_s3(storage: Storage):
    storage.client.create_bucket(Bucket="lake")
    command = ["cargo", "test", "--locked", "--quiet", "--workspace", "--test", "s3", "--", "--include-ignored"]
    environment = os.environ | {"ANABRANCH_TEST_S3_ENDPOINT": storage.settings["s3.endpoint"]}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


@pytest.fixture
def server(storage: Storage, forgetful_server: Server) -> Server:
    """A server that is stopped and audited before its storage goes away."""
    return forgetful_server


@pytest.fixture
def catalog(server: Server, storage: Storage):
    server.call("POST", "/v1/catalogs", {
        "name": "cold", "location": f"s3://{BUCKET}/cold", "properties": storage.settings,
    })
    catalog = pyiceberg(server.iceberg, "cold", **storage.settings)
    catalog.create_namespace("sales")
    return catalog


def test_a_table_on_s3_is_written_read_and_changed(catalog, storage):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2))
    table.overwrite(rows(3))
    assert table.location().startswith(f"s3://{BUCKET}/cold/")
    assert ids(catalog.load_table("sales.orders")) == [3]
    assert len(storage.keys(".metadata.json")) >= 3


def test_a_purge_empties_the_table_s_folder_on_s3(catalog, storage):
    catalog.create_table("sales.orders", SCHEMA).append(rows(1))
    assert storage.keys(".parquet")
    catalog.purge_table("sales.orders")
    wait_until(lambda: not storage.keys(".parquet"), "the data files of a purged table are gone")


def test_catalogs_on_s3_and_on_a_local_folder_live_side_by_side(server, catalog):
    local = pyiceberg(server.iceberg)
    local.create_namespace("sales")
    local.create_table("sales.orders", SCHEMA).append(rows(1))
    catalog.create_table("sales.orders", SCHEMA).append(rows(2))
    assert (ids(local.load_table("sales.orders")), ids(catalog.load_table("sales.orders"))) == ([1], [2])
