from __future__ import annotations

import pytest

from capo.simulator.tests.environment import GLANCE, NOBODY, SimulatorEnvironment, stage

__all__ = ["stage"]
TINY, UBUNTU = "tiny-image", "ubuntu-2204-kube-v1.31.0"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("", [UBUNTU, TINY], id="the newest first"),
        pytest.param("name=tiny-image", [TINY], id="name"),
        pytest.param("name=tiny", [], id="not a part of a name"),
        pytest.param("tag=capi&name=tiny-image", [TINY], id="tag and name"),
        pytest.param("tag=capi&tag=other", [], id="every tag"),
        pytest.param("status=queued", [], id="status"),
        pytest.param("os_distro=ubuntu&limit=1", [UBUNTU], id="property and limit"),
        pytest.param("foo=bar", [], id="a property that no image has"),
        pytest.param("sort=name:asc", [TINY, UBUNTU], id="order"),
    ],
)
def test_images_are_filtered_as_glance_does(stage: SimulatorEnvironment, query: str, found: list[str]) -> None:
    answer = stage.member.ask("GET", f"{GLANCE}/images?{query}")

    assert [image["name"] for image in answer["images"]] == found


def test_pages_of_images_follow_their_links(stage: SimulatorEnvironment) -> None:
    first = stage.member.ask("GET", f"{GLANCE}/images?limit=1")
    second = stage.member.ask("GET", f"/image{first['next']}")
    third = stage.member.ask("GET", f"/image{second['next']}")

    assert [first["images"][0]["name"], second["images"][0]["name"]] == [UBUNTU, TINY]
    assert (third["images"], "next" in third) == ([], False)


def test_an_unknown_image_is_a_page_of_html(stage: SimulatorEnvironment) -> None:
    answer = stage.member.request("GET", f"{GLANCE}/images/{NOBODY}")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "text/html; charset=UTF-8"
    assert f"No image found with ID {NOBODY}" in answer.text


def test_a_member_may_not_delete_a_public_image(stage: SimulatorEnvironment) -> None:
    answer = stage.member.request("DELETE", f"{GLANCE}/images/{stage.image()}")

    assert answer.status_code == 403
    assert "You are not authorized to complete delete_image action." in answer.text
