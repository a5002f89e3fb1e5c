"""The pages about settings and metrics list exactly what the program has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

import capo
from capo import caches, settings, shares
from capo.engine import metrics as engine_metrics
from capo.gauges import NamespaceGauge
from capo.kube import client
from capo.openstack import metrics as openstack_metrics
from capo.openstack import quota_usage
from controllers import credentials, drift

pytestmark = pytest.mark.lint

REFERENCE = Path(capo.__file__).parent.parent / "docs" / "reference"


def rows(page: str, *, first_cell: str = r"`([^`]+)`") -> dict[str, str]:
    """Return the table rows of a page by their first cell."""
    lines = (REFERENCE / page).read_text().splitlines()
    return {found[1]: line for line in lines if (found := re.match(rf"\| {first_cell} \|", line))}


def test_each_flag_is_documented_with_its_default_and_no_other_is() -> None:
    documented = rows("settings.md", first_cell="`--([^`]+)`")

    assert set(documented) == {flag.name for flag in settings.FLAGS} | {"version"}
    for flag in settings.FLAGS:
        default = f"`{flag.default}`" if flag.default else "empty"
        assert documented[flag.name] == f"| `--{flag.name}` | {default} | {flag.text} |"


def test_each_variable_is_documented_and_no_other_is() -> None:
    documented = {name for name in rows("settings.md") if not name.startswith("--")}

    assert documented == {*settings.VARIABLES, "KUBECONFIG"}


def test_each_metric_is_documented_with_its_labels_and_no_other_is() -> None:
    assert caches.ENTRIES
    assert engine_metrics.DEPTH
    assert client.WRITES
    assert openstack_metrics.__name__
    assert credentials.EXPIRES
    assert quota_usage.USED
    assert drift.REPAIRS
    assert shares.USED
    documented = {name: row for name, row in rows("metrics.md").items() if row.count("|") == 5}
    known = {}
    collectors: list[Any] = list(REGISTRY._collector_to_names)
    for collector in collectors:
        if hasattr(collector, "_labelnames"):
            name = collector._name + ("_total" if collector._type == "counter" else "")
            labels = ", ".join(f"`{label}`" for label in collector._labelnames) or "-"
            known[name] = f"| `{name}` | {collector._type} | {labels} | {collector._documentation} |"
        elif isinstance(collector, NamespaceGauge):
            labels = ", ".join(f"`{label}`" for label in collector.labels)
            known[collector.name] = f"| `{collector.name}` | gauge | {labels} | {collector.documentation} |"

    assert documented == known


REGISTERED = r'(?:caches\.register\(\s*|Bounded\.by_\w+\([^=]*name=)"(\w+)"'


def test_each_cache_is_documented_with_what_bounds_it_and_no_other_is() -> None:
    sources = [path for folder in ("capo", "controllers") for path in (REFERENCE.parent.parent / folder).rglob("*.py")]
    texts = [path.read_text() for path in sources if "tests" not in path.parts]
    registered = {name for text in texts for name in re.findall(REGISTERED, text)}
    documented = {name for name, row in rows("metrics.md").items() if row.count("|") == 4 and name != "cache"}

    assert documented == registered


def test_no_function_caches_without_a_bound() -> None:
    sources = [path for folder in ("capo", "controllers") for path in (REFERENCE.parent.parent / folder).rglob("*.py")]
    shipped = [path for path in sources if not {"tests", "simulator", "local"} & set(path.parts)]

    assert not [path for path in shipped if re.search(r"lru_cache\(maxsize=None|functools\.cache\b", path.read_text())]


KEPT = r"self\.(_\w+)(?:: [^=\n]+)? = (?:\{\}|set\(\)\n|(?:\w+\.)?(?:OrderedDict|defaultdict|Counter)\()"
WITHOUT_A_METRIC = {
    "ages.py": {"_told"},  # services
    "clouds.py": {"_taken_s", "_namespaces", "_shared"},  # as clouds
    "shared_state.py": {"_members", "_refused"},  # as clouds
    "connections.py": {"_taken"},  # hosts whose answers are being read
    "endpoints.py": {"_found", "_locks"},  # services
    "watch.py": {"_listed", "_sessions"},  # kinds
    "credentials.py": {"_sites", "_expiry", "_unused", "_by_fingerprint", "_by_identity"},  # as credentials
    "credential_secrets.py": {"_unreadable"},  # as credentials
    "list_poller.py": {
        "_errors",
        "_cursors",
        "_listed_s",
        "_claims",
        "_claimed",
    },  # kinds; claims are deleted with their owners
    "lanes.py": {"_freed", "_groups", "_parked", "_parked_under"},  # ready objects, by lane
    "minted.py": {"_creating"},  # threads
    "own_writes.py": {"_by"},  # as own_writes
    "lookup_threads.py": {"_running"},  # namespaces of the running lookups: threads
    "poller_pool.py": {"_served", "_numbers", "_news", "_waiting", "_waits", "_freed"},  # clouds
    "quota_holds.py": {"_services"},  # services
    "quota_places.py": {"_places"},  # counted by clouds.py
    "queue.py": {"_own_versions", "_ready", "_failures", "_conflicts"},  # objects
    "reference_cache.py": {"_entries"},  # counted by its owner, as is the next
    "object_states.py": {"_waiting", "_pending"},  # as object_states
    "owners.py": {"_owners", "_by_key", "_by_credential"},
    "auth_backoff.py": {"_by_service"},  # services
    "reservations.py": {"_held"},  # threads
    "store.py": {"_objects", "_names", "_indices", "_by_owner", "_by_label", "_newest"},  # indexes of objects; kinds
    "resync.py": {"_missing", "_behind", "_left_to_reset", "_is_stale", "_watchable"},  # kinds, and a flag
    "worker.py": {"_running", "_of_controller"},  # threads
    "reconciler.py": {"_auth_failures"},  # counted as reconciles
}
"""Tables with another bound, and that bound."""


def test_a_table_that_is_kept_is_counted_as_a_cache_or_bounded_by_something_else() -> None:
    """A new table in a class that lives until the process ends fails here: register it, or name its bound."""
    root = REFERENCE.parent.parent
    sources = [
        path
        for part in ("capo/engine", "capo/openstack", "capo/kube", "controllers")
        for path in (root / part).rglob("*.py")
    ]
    unbounded = {}
    for path in sources:
        text = path.read_text()
        counted = set(re.findall(r"\w+\.(_\w+)\)", " ".join(re.findall(r"caches\.register\(.*", text))))
        found = set(re.findall(KEPT, text)) - counted - WITHOUT_A_METRIC.get(path.name, set())
        if found and "tests" not in path.parts:
            unbounded[path.name] = found

    assert unbounded == {}
