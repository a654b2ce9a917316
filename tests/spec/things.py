"""The things that generated requests find."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass

NAMESPACE, EMPTY_NAMESPACE, TABLE, VIEW = "accounting", "empty", "sales", "big_sales"

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
VIEW_VERSION = {
    "version-id": 1, "timestamp-ms": 1_700_000_000_000, "schema-id": 0, "summary": {},
    "default-namespace": [NAMESPACE],
    "representations": [{"type": "sql", "sql": f"SELECT id FROM {TABLE}", "dialect": "spark"}],
}


@dataclass(frozen=True)
class Things:
    """What stands below `base`, the address of a warehouse's routes."""

    base: str

    def restore(self) -> None:
        """Makes what isn't there: the first time all, later what a request took away."""
        for levels in ([NAMESPACE], [NAMESPACE, "tax"], [EMPTY_NAMESPACE]):
            self._make("namespaces", {"namespace": levels})
        self._make(f"namespaces/{NAMESPACE}/tables", {"name": TABLE, "schema": SCHEMA})
        self._make(f"namespaces/{NAMESPACE}/views", {
            "name": VIEW, "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {},
        })

    def document(self, kind: str, name: str) -> str:
        """Where a table's or view's metadata document is."""
        return self._call("GET", f"namespaces/{NAMESPACE}/{kind}/{name}")["metadata-location"]

    def _make(self, path: str, body: dict) -> None:
        try:
            self._call("POST", path, body)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise

    def _call(self, method: str, path: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/{path}", method=method, data=data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
