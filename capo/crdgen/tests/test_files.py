from __future__ import annotations

from pathlib import Path

from capo.crdgen import files


def test_the_generated_files_are_current() -> None:
    assert files.stale(files.generated()) == []


def test_seven_definitions_are_installed() -> None:
    assert [crd["spec"]["names"]["kind"] for crd in files.load()] == [
        "OpenStackClusterIdentity",
        "OpenStackCluster",
        "OpenStackClusterTemplate",
        "OpenStackFloatingIPPool",
        "OpenStackMachine",
        "OpenStackMachineTemplate",
        "OpenStackServer",
    ]


def test_what_is_changed_missing_or_left_over_is_stale_until_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "changed.yaml").write_text("by hand")
    (tmp_path / "left-over.yaml").write_text("of a kind that is gone")
    (tmp_path / "current.yaml").write_text("c")
    wanted = {tmp_path / f"{name}.yaml": name[0] for name in ("changed", "current", "missing")}

    stale = files.write(wanted)

    assert [path.name for path in stale] == ["changed.yaml", "left-over.yaml", "missing.yaml"]
    assert files.stale(wanted) == []
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "changed.yaml": "c",
        "current.yaml": "c",
        "missing.yaml": "m",
    }
