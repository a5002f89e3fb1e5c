"""Which proxy leads to the API server, and what is refused."""

from __future__ import annotations

import pytest

from capo.kube import proxies
from capo.kube.errors import KubeError


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api:6443", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://api:6443", {"https_proxy": "proxy:3128"}, "http://proxy:3128"),
        ("https://api:6443", {"HTTP_PROXY": "http://proxy:3128"}, None),
        ("https://api:6443", {"ALL_PROXY": "http://proxy:3128"}, None),
        ("http://api", {"HTTP_PROXY": "http://proxy", "HTTPS_PROXY": "http://other"}, "http://proxy:80"),
        ("https://api:6443", {"HTTPS_PROXY": "http://[fd00::1]:3128"}, "http://[fd00::1]:3128"),
        ("https://api:6443", {"HTTPS_PROXY": "http://proxy:3128", "no_proxy": "api"}, None),
        ("https://api:6443", {"HTTPS_PROXY": "socks5://proxy", "NO_PROXY": "api"}, None),
    ],
)
def test_the_environment_names_the_proxy_of_a_scheme(
    server: str, environ: dict[str, str], expected: str | None
) -> None:
    found = proxies.choose(server, environ)

    assert (found.url if found else None) == expected


def test_the_proxy_of_a_kubeconfig_comes_before_the_environment_and_its_exceptions() -> None:
    environ = {"HTTPS_PROXY": "http://other:3128", "NO_PROXY": "*"}

    assert proxies.choose("https://api:6443", environ, given="http://proxy:3128") == proxies.Proxy("http://proxy:3128")


@pytest.mark.parametrize(
    "url", ["socks5://u:s3cret@proxy:1080", "https://u:s3cret@proxy", "http://u:s3cret@:1", "http://u:s3cret@proxy:x"]
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(KubeError, match="proxy") as caught:
        proxies.parse(url)

    assert "s3cret" not in str(caught.value)


def test_user_and_password_are_in_the_header_alone() -> None:
    proxy = proxies.parse("http://me:p%40ss%3Aword@proxy:3128")

    assert proxy.headers == {"proxy-authorization": "Basic bWU6cEBzczp3b3Jk"}
    assert "ss" not in repr(proxy) + proxy.url
    assert proxy.url_with_login == "http://me:p%40ss%3Aword@proxy:3128"
