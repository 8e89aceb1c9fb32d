"""The parts of a base URL that claw must know before anything is sent."""

from __future__ import annotations

import msgspec

__all__ = ["Address", "is_loopback", "parse_address"]


class Address(msgspec.Struct, frozen=True):
    """``place`` is host and port as written: safe to show, since no login is in it.

    ``login`` says that the URL had one; ``target`` is its path and query.
    """

    scheme: str
    host: str
    place: str
    port: int
    login: bool
    target: str


def parse_address(url: str) -> Address:
    """Scheme and host of an ``http`` or ``https`` URL (RFC 3986, section 3).

    Raises ``ValueError`` that says what is wrong, and does not quote the URL, which
    may hold a login.
    """
    if not url.isprintable() or " " in url:
        raise ValueError("it contains a space or an unprintable character")
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme not in {"http", "https"}:
        raise ValueError("it does not begin with `https://` or `http://`")
    whole = rest
    for end in "/?#":
        rest = rest.partition(end)[0]
    login, _, place = rest.rpartition("@")
    target = whole[len(rest) :].partition("#")[0]
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        known = bracket and ":" in host and set(host.lower()) <= set("0123456789abcdef:.")
        if not known or port[:1] not in ("", ":"):
            raise ValueError("its host is no IPv6 address")
        port = port[1:]
    else:
        host, _, port = place.partition(":")
        _check_name(host)
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise ValueError("its port is no number from 1 to 65535")
    number = int(port) if port else 443 if scheme == "https" else 80
    target = target if target.startswith("/") else f"/{target}"
    return Address(scheme, host.lower(), place, number, bool(login), target)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host in {"localhost", "::1"}:
        return True
    return host.startswith("127.") and host.replace(".", "").isdigit()


def _check_name(host: str) -> None:
    if not host:
        raise ValueError("it names no host")
    for label in host.removesuffix(".").split("."):
        letters = label.replace("-", "").replace("_", "")
        # A name in another script is encoded later: only its own letters are looked at.
        if not 0 < len(label) < 64 or (letters and not letters.isalnum()):
            raise ValueError("its host is no host name")
