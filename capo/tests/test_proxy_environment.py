"""What is reached without a proxy: the examples of golang.org/x/net/http/httpproxy."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from capo import proxy_environment


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_direct"),
    [
        # Source: golang.org/x/net/http/httpproxy, proxy_test.go, UseProxyTests and its NO_PROXY.
        ("http://localhost", "", True),
        ("http://127.0.0.1", "", True),
        ("http://127.0.0.2", "", True),
        ("https://[::1]:6443", "", True),
        ("https://[::2]", "", False),
        ("https://192.168.1.1", "foobar.com, .barbaz.net, 192.168.1.1, 192.168.1.2:81", True),
        ("http://192.168.1.2", "192.168.1.2:81", False),
        ("http://192.168.1.2:81", "192.168.1.2:81", True),
        ("https://192.168.1.2:81", "[192.168.1.2]:81", True),
        ("https://www.barbaz.net", ".barbaz.net", True),
        ("https://barbaz.net", ".barbaz.net", False),
        ("https://barbaz.net", "*.barbaz.net", False),
        ("https://www.barbaz.net", "*.barbaz.net", True),
        ("https://foobar.com", "FooBar.com", True),
        ("https://www.foobar.com", "foobar.com", True),
        ("https://foofoobar.com", "foobar.com", False),
        ("https://foobar.com:6443", "foobar.com:443", False),
        ("https://foobar.com", "foobar.com:443", True),
        ("https://localhost.net", "", False),
        ("https://10.96.0.1:443", "10.96.0.0/12", True),
        ("https://10.96.0.1:443", "10.0.0.0/12", False),
        ("https://[fd00:10::1]:443", "fd00:10::/108", True),
        ("https://[fd00:10::1]:443", "fd00:10::1", True),
        ("https://[fd00:10::1]:443", "[fd00:10::1]:443", True),
        ("https://[fd00:10::1]:443", "10.0.0.0/8,not/a/network,:80,*.", False),
        ("https://anything", "example.org,*", True),
    ],
)
def test_what_is_reached_directly_is_what_go_reaches_directly(url: str, no_proxy: str, is_direct: bool) -> None:
    assert proxy_environment.is_exempt(urlsplit(url), no_proxy) is is_direct
