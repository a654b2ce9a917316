"""PyIceberg, unmodified, against one server."""

import pyarrow
import pytest
from harness import ODD_NAMES, SCHEMA, data_files, ids, local_path, pyiceberg, rows
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from support.server import Server
from support.waiting import wait_until


@pytest.fixture
def catalog(server: Server):
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    return catalog


def test_a_created_table_is_listed_and_loads_as_it_was_declared(catalog):
    created = catalog.create_table("sales.orders", SCHEMA, properties={"owner": "ada"})
    loaded = catalog.load_table("sales.orders")
    assert catalog.list_tables("sales") == [("sales", "orders")]
    assert catalog.table_exists("sales.orders")
    assert loaded.metadata == created.metadata
    assert loaded.properties["owner"] == "ada"


def test_appended_rows_are_read_back(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids(catalog.load_table("sales.orders")) == [1, 2, 3]


def test_overwrite_replaces_all_rows_or_those_that_match(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    table.overwrite(rows(20), overwrite_filter=EqualTo("id", 2))
    assert ids(table) == [1, 3, 20]
    table.overwrite(rows(7))
    assert ids(table) == [7]


def test_delete_removes_the_rows_that_match(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    table.delete(EqualTo("id", 2))
    assert ids(table) == [1, 3]


def test_upsert_changes_known_rows_and_adds_new_ones(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2))
    table.upsert(pyarrow.table({"id": [2, 3], "word": ["changed", "new"]}), join_cols=["id"])
    words = {row["id"]: row["word"] for row in table.scan().to_arrow().to_pylist()}
    assert words == {1: "word 1", 2: "changed", 3: "new"}


def test_columns_can_be_added_renamed_widened_and_dropped(catalog):
    table = catalog.create_table("sales.orders", pyarrow.schema([("id", pyarrow.int32()), ("word", pyarrow.string())]))
    with table.update_schema() as schema:
        schema.add_column("amount", LongType(), doc="in cents")
        schema.rename_column("word", "label")
        schema.update_column("id", LongType())
    with table.update_schema() as schema:
        schema.delete_column("label")
        schema.add_column("label", StringType())
    loaded = catalog.load_table("sales.orders").schema()
    assert [(field.name, field.field_type) for field in loaded.fields] == [
        ("id", LongType()), ("amount", LongType()), ("label", StringType()),
    ]
    assert loaded.find_field("label").field_id == 4, "a name used again is another column"


def test_rows_from_before_a_schema_change_are_read_with_the_new_schema(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.add_column("amount", IntegerType())
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "word": "word 1", "amount": None}]


def test_partitioning_can_change_while_rows_are_there(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_identity("word")
    table.append(rows(2, 3))
    with table.update_spec() as spec:
        spec.remove_field("id_bucket")
    table.append(rows(4))
    assert ids(table) == [1, 2, 3, 4]
    assert [field.name for field in catalog.load_table("sales.orders").spec().fields] == ["word"]


def test_a_table_is_created_with_partitioning_and_sort_order(catalog):
    schema = Schema(NestedField(1, "at", TimestampType()), NestedField(2, "word", StringType()))
    catalog.create_table(
        "sales.orders", schema,
        partition_spec=PartitionSpec(PartitionField(1, 1000, DayTransform(), "day")),
        sort_order=SortOrder(SortField(2, IdentityTransform())),
    )
    loaded = catalog.load_table("sales.orders")
    assert [str(field.transform) for field in loaded.spec().fields] == ["day"]
    assert [field.source_id for field in loaded.sort_order().fields] == [2]


def test_the_sort_order_can_change(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    with table.update_sort_order() as order:
        order.asc("word", IdentityTransform())
    loaded = catalog.load_table("sales.orders")
    assert [field.source_id for field in loaded.sort_order().fields] == [loaded.schema().find_field("word").field_id]


def test_create_table_as_select_shows_the_table_only_with_its_rows(catalog):
    with catalog.create_table_transaction("sales.orders", SCHEMA) as transaction:
        transaction.append(rows(1, 2))
        assert not catalog.table_exists("sales.orders")
    assert ids(catalog.load_table("sales.orders")) == [1, 2]


def test_of_two_staged_creates_of_one_name_one_is_refused(catalog):
    first = catalog.create_table_transaction("sales.orders", SCHEMA)
    second = catalog.create_table_transaction("sales.orders", SCHEMA)
    first.commit_transaction()
    with pytest.raises((CommitFailedException, TableAlreadyExistsError)):
        second.commit_transaction()


def test_a_renamed_table_keeps_identity_and_rows_also_across_namespaces(catalog):
    catalog.create_namespace("archive")
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    catalog.rename_table("sales.orders", "sales.bookings")
    moved = catalog.rename_table("sales.bookings", "archive.bookings")
    assert moved.metadata.table_uuid == table.metadata.table_uuid
    assert ids(moved) == [1]
    assert catalog.list_tables("sales") == []
    moved.append(rows(2))
    assert ids(catalog.load_table("archive.bookings")) == [1, 2]


def test_rename_refuses_a_taken_name_and_a_missing_namespace(catalog):
    catalog.create_table("sales.orders", SCHEMA)
    catalog.create_table("sales.bookings", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("sales.orders", "sales.bookings")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table("sales.orders", "nowhere.orders")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("sales.missing", "sales.found")


def test_a_branch_of_a_table_takes_rows_that_main_does_not_show(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    table.append(rows(2), branch="audit")
    assert ids(table) == [1]
    assert sorted(table.scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_tag_of_a_table_keeps_its_rows_until_it_is_removed(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "monday").commit()
    table.overwrite(rows(2))
    assert catalog.load_table("sales.orders").scan().use_ref("monday").to_arrow()["id"].to_pylist() == [1]
    table.manage_snapshots().remove_tag("monday").commit()
    assert "monday" not in catalog.load_table("sales.orders").refs()


def test_expired_snapshots_are_gone_and_the_rest_is_readable(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    expired = table.current_snapshot().snapshot_id
    table.append(rows(2))
    table.maintenance.expire_snapshots().by_id(expired).commit()
    assert table.refresh().snapshot_by_id(expired) is None
    assert ids(table) == [1, 2]


def test_table_properties_are_set_and_removed(catalog):
    table = catalog.create_table("sales.orders", SCHEMA, properties={"owner": "ada", "tier": "gold"})
    with table.transaction() as transaction:
        transaction.set_properties(tier="silver", region="north")
        transaction.remove_properties("owner")
    properties = catalog.load_table("sales.orders").properties
    assert properties.get("tier") == "silver" and properties.get("region") == "north"
    assert "owner" not in properties


def test_namespaces_nest_and_are_listed_level_by_level(catalog):
    catalog.create_namespace(("sales", "europe"))
    catalog.create_namespace(("sales", "europe", "north"))
    catalog.create_table(("sales", "europe", "north", "orders"), SCHEMA)
    assert catalog.list_namespaces() == [("sales",)]
    assert catalog.list_namespaces("sales") == [("sales", "europe")]
    assert catalog.list_namespaces(("sales", "europe")) == [("sales", "europe", "north")]
    assert catalog.list_tables(("sales", "europe", "north")) == [("sales", "europe", "north", "orders")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(("sales", "europe"))


def test_a_namespace_below_a_missing_parent_is_refused(catalog):
    with pytest.raises(RESTError):
        catalog.create_namespace(("nowhere", "below"))
    assert not catalog.namespace_exists(("nowhere", "below")) and not catalog.namespace_exists("nowhere")


def test_namespace_properties_are_set_updated_and_removed(catalog):
    catalog.create_namespace("archive", {"owner": "ada", "tier": "gold"})
    summary = catalog.update_namespace_properties("archive", removals={"owner", "absent"}, updates={"tier": "silver"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["tier"], ["absent"])
    properties = catalog.load_namespace_properties("archive")
    assert properties["tier"] == "silver" and "owner" not in properties


def test_a_namespace_is_created_once_and_dropped_only_when_empty(catalog):
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("sales")
    catalog.drop_table("sales.orders")
    catalog.drop_namespace("sales")
    assert not catalog.namespace_exists("sales")
    with pytest.raises(NoSuchNamespaceError):
        catalog.drop_namespace("sales")


def test_drop_keeps_the_files_and_the_table_can_be_registered_again(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2))
    catalog.drop_table("sales.orders")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.orders")
    assert data_files(table.location()), "a plain drop touches no file"
    assert ids(catalog.register_table("sales.again", table.metadata_location)) == [1, 2]


def test_register_refuses_a_taken_name(catalog):
    table = catalog.create_table("sales.orders", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("sales.orders", table.metadata_location)


def test_purge_removes_the_files_when_no_history_needs_them(forgetful_server):
    catalog = pyiceberg(forgetful_server.iceberg)
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1))
    catalog.purge_table("sales.orders")
    assert not catalog.table_exists("sales.orders")
    wait_until(lambda: not data_files(table.location()), "the data files of a purged table are gone")


def test_a_table_of_the_same_name_after_a_drop_is_another_table(catalog):
    first = catalog.create_table("sales.orders", SCHEMA)
    first.append(rows(1))
    catalog.drop_table("sales.orders")
    second = catalog.create_table("sales.orders", SCHEMA)
    assert second.metadata.table_uuid != first.metadata.table_uuid
    assert local_path(second.location()) != local_path(first.location())
    assert ids(second) == []


def test_create_refuses_a_taken_name_and_a_missing_namespace(catalog):
    catalog.create_table("sales.orders", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("sales.orders", SCHEMA)
    assert catalog.create_table_if_not_exists("sales.orders", SCHEMA).name() == ("sales", "orders")
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("nowhere.orders", SCHEMA)


def test_of_two_schema_changes_from_one_version_the_later_is_refused(catalog):
    catalog.create_table("sales.orders", SCHEMA)
    early, late = catalog.load_table("sales.orders"), catalog.load_table("sales.orders")
    with early.update_schema() as schema:
        schema.add_column("amount", LongType())
    with pytest.raises(CommitFailedException):
        with late.update_schema() as schema:
            schema.add_column("discount", LongType())
    assert [field.name for field in catalog.load_table("sales.orders").schema().fields] == ["id", "word", "amount"]


def test_a_commit_on_a_dropped_table_is_not_found_even_if_the_name_is_used_again(catalog):
    stale = catalog.create_table("sales.orders", SCHEMA)
    catalog.drop_table("sales.orders")
    with pytest.raises(RESTError, match="NoSuchTableException"):
        stale.append(rows(1))
    catalog.create_table("sales.orders", SCHEMA)
    with pytest.raises(ValueError, match="Table UUID does not match"):
        stale.append(rows(1))
    assert ids(catalog.load_table("sales.orders")) == []


def test_a_view_is_created_loaded_listed_dropped_and_registered_again(server, catalog):
    sql = SQLViewRepresentation(type="sql", sql="SELECT id FROM orders WHERE id > 10", dialect="duckdb")
    version = ViewVersion(
        version_id=1, schema_id=0, timestamp_ms=1_700_000_000_000, summary={}, default_namespace=["sales"],
        representations=[sql],
    )
    made = catalog.create_view("sales.big_orders", SCHEMA, version, properties={"owner": "sales"})
    loaded = catalog.load_view("sales.big_orders")
    assert loaded.uuid() == made.uuid()
    assert loaded.properties == {"owner": "sales"}
    assert loaded.sql_for("duckdb").sql == sql.sql
    assert catalog.list_views("sales") == [("sales", "big_orders")]
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view("sales.big_orders", SCHEMA, version)
    document = server.call("GET", "/iceberg/v1/lake/namespaces/sales/views/big_orders")["metadata-location"]
    catalog.drop_view("sales.big_orders")
    assert not catalog.view_exists("sales.big_orders")
    again = catalog.register_view("sales.again", document)
    assert again.uuid() == made.uuid()
    assert catalog.view_exists("sales.again")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_namespaces_and_tables_survive_the_whole_life_of_a_table(catalog, name):
    namespace, identifier = (name,), (name, name)
    catalog.create_namespace(namespace, {"title": name})
    catalog.create_table(identifier, SCHEMA).append(rows(1))
    assert namespace in catalog.list_namespaces()
    assert catalog.load_namespace_properties(namespace)["title"] == name
    assert catalog.list_tables(namespace) == [identifier]
    assert ids(catalog.load_table(identifier)) == [1]
    nested = (name, f"below {name}")
    catalog.create_namespace(nested)
    catalog.rename_table(identifier, (*nested, f"{name} moved"))
    catalog.load_table((*nested, f"{name} moved")).append(rows(2))
    assert ids(catalog.load_table((*nested, f"{name} moved"))) == [1, 2]
    catalog.drop_table((*nested, f"{name} moved"))
    catalog.drop_namespace(nested)
    catalog.drop_namespace(namespace)
    assert not catalog.namespace_exists(namespace)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_children_of_an_oddly_named_namespace_are_listed(catalog, name):
    """PyIceberg 0.12 encodes `parent` twice: once itself, once with the whole query."""
    catalog.create_namespace((name,))
    catalog.create_namespace((name, "below"))
    assert catalog.list_namespaces((name,)) == [(name, "below")]
