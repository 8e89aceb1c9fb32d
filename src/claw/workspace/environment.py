"""The environment that children are given: an allow-list, without credentials.

What is kept: who and where the user is, the locale, the terminal's kind, proxies
and certificates, and what tool chains are configured by. Names that look like a
credential are dropped even where their family is allowed, and so is everything
that is not listed: a provider's key never reaches a command that a model wrote.
The PATH keeps its absolute entries only: an empty or relative one would run what
somebody put into the directory that a command happens to start in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["child_environment"]

_NAMES = frozenset(
    # the user and the session
    [
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "CI",
        "TMPDIR",
        "TMP",
        "TEMP",
        "HOSTNAME",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "SSH_AUTH_SOCK",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "FTP_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "CONDA_EXE",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "PKG_CONFIG_PATH",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "CPPFLAGS",
        "LDFLAGS",
        "MAKEFLAGS",
        "JAVA_HOME",
        "JDK_HOME",
        "GRADLE_USER_HOME",
        "M2_HOME",
        "MAVEN_OPTS",
        "ANDROID_HOME",
        "ANDROID_SDK_ROOT",
        "GOPATH",
        "GOROOT",
        "GOBIN",
        "GOCACHE",
        "GOMODCACHE",
        "GOPROXY",
        "GOFLAGS",
        "GOSUMDB",
        "GONOSUMDB",
        "GOPRIVATE",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "RUSTFLAGS",
        "NVM_DIR",
        "NVM_BIN",
        "NODE_PATH",
        "NODE_OPTIONS",
        "GEM_HOME",
        "GEM_PATH",
        "RBENV_ROOT",
        "PYENV_ROOT",
        "DOCKER_HOST",
        "SOURCE_DATE_EPOCH",
    ]
)
_FAMILIES = ("LC_", "XDG_", "PYTHON", "PIP_", "UV_")
_CREDENTIAL = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")

# Nothing may wait for a person: editors succeed without a change, pagers print,
# git fails where it would ask.
_FIXED = {
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
}


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of ``environ`` children see, and the fixed settings."""
    kept = {name: value for name, value in environ.items() if _allowed(name, value)}
    path = [entry for entry in kept.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    return kept | {"PATH": os.pathsep.join(path) or os.defpath} | _FIXED


def _allowed(name: str, value: str) -> bool:
    # Proxies are written in either case.
    if name in _NAMES or (name.endswith("_proxy") and name.upper() in _NAMES):
        return True
    if not name.startswith(_FAMILIES):
        return False
    return not any(word in name.upper() for word in _CREDENTIAL) and not _has_login(value)


def _has_login(value: str) -> bool:
    """Whether a URL in ``value`` has a login before its host."""
    return any("@" in rest.split("/", 1)[0] for rest in value.split("://")[1:])
