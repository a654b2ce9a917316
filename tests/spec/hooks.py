"""Schemathesis hooks that lead generated requests past the first check.

A generated body names tables, documents and columns that aren't there, so a server that looks at them refuses nearly
all. Three of four bodies that were generated as valid get real names and a schema that holds together; everything
else in them stays as generated. And what a request took away is made again, so that the next one finds it.
"""

import itertools
import json
import os
import zlib
from collections.abc import Callable

import schemathesis
from things import NAMESPACE, SCHEMA, TABLE, VIEW, VIEW_VERSION, Things

THINGS = Things(os.environ["ANABRANCH_SPEC_BASE"])
NUMBERS = itertools.count()
# Updates that fit any table or view, whatever values are generated for them.
FITTING_UPDATES = {"set-properties", "remove-properties", "remove-snapshots", "remove-snapshot-ref", "remove-statistics",
                   "remove-partition-statistics"}


@schemathesis.hook
def before_call(context, case, kwargs) -> None:
    mend = MENDERS.get(name_of(case))
    is_meant_to_fit = case.meta is not None and not case.meta.generation.mode.is_negative
    if mend and is_meant_to_fit and isinstance(case.body, dict) and one_of_four(case.body) != 0:
        mend(case.body)


@schemathesis.hook
def after_call(context, case, response) -> None:
    if response.status_code < 300 and takes_away(name_of(case)):
        THINGS.restore()


def name_of(case) -> str:
    return f"{case.operation.method.upper()} {case.operation.path}"


def takes_away(name: str) -> bool:
    return name.startswith("DELETE ") or name.endswith(("/rename", "/unregister"))


def one_of_four(body: dict) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True, default=str).encode()) % 4


def fresh(name: str) -> str:
    """A name that isn't taken, with what was generated in it as far as names may hold that."""
    kept = "".join(char for char in name if char.isprintable())[:20]
    return f"{kept}{next(NUMBERS)}"


def create_namespace(body: dict) -> None:
    name = fresh("".join(body["namespace"]))
    body["namespace"] = [NAMESPACE, name] if one_of_four(body) == 1 else [name]


def create_table(body: dict) -> None:
    body |= {"name": fresh(body["name"]), "schema": SCHEMA}
    for field in ("location", "partition-spec", "write-order"):
        body.pop(field, None)


def create_view(body: dict) -> None:
    body |= {"name": fresh(body["name"]), "schema": SCHEMA, "view-version": VIEW_VERSION}
    body.pop("location", None)


def commit(body: dict) -> None:
    body.pop("identifier", None)
    body["requirements"] = []
    kept = [update for update in body["updates"] if update.get("action") in FITTING_UPDATES]
    body["updates"] = [*kept, {"action": "set-properties", "updates": {"touched": str(len(body["updates"]))}}]


def commit_transaction(body: dict) -> None:
    changes = body["table-changes"][:1] or [{"updates": []}]
    for change in changes:
        commit(change)
        change["identifier"] = {"namespace": [NAMESPACE], "name": TABLE}
    body["table-changes"] = changes


def register(kind: str, name: str) -> Callable[[dict], None]:
    def mend(body: dict) -> None:
        body |= {"name": fresh(body["name"]), "metadata-location": THINGS.document(kind, name)}
    return mend


def rename(name: str) -> Callable[[dict], None]:
    def mend(body: dict) -> None:
        body["source"] = {"namespace": [NAMESPACE], "name": name}
        body["destination"] |= {"namespace": [NAMESPACE], "name": fresh(body["destination"]["name"])}
    return mend


IN_NAMESPACE = "POST /v1/{prefix}/namespaces/{namespace}"
MENDERS: dict[str, Callable[[dict], None]] = {
    "POST /v1/{prefix}/namespaces": create_namespace,
    f"{IN_NAMESPACE}/tables": create_table,
    f"{IN_NAMESPACE}/tables/{{table}}": commit,
    f"{IN_NAMESPACE}/register": register("tables", TABLE),
    f"{IN_NAMESPACE}/views": create_view,
    f"{IN_NAMESPACE}/views/{{view}}": commit,
    f"{IN_NAMESPACE}/register-view": register("views", VIEW),
    "POST /v1/{prefix}/tables/rename": rename(TABLE),
    "POST /v1/{prefix}/views/rename": rename(VIEW),
    "POST /v1/{prefix}/transactions/commit": commit_transaction,
}
