"""Reads from client objects of Docker, Podman and Kubernetes which engine they lead to, so that code runs there and nowhere else."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from llm_sandbox.exceptions import ValidationError

Env = tuple[tuple[str, str], ...]


def docker_env(client: Any) -> Env:
    """Return the variables for the daemon that a docker.DockerClient leads to."""
    api = getattr(client, "api", client)
    adapter: Any = getattr(api, "_custom_adapter", None)
    base = str(getattr(api, "base_url", ""))
    if getattr(adapter, "socket_path", None):
        return _docker(f"unix://{_absolute(adapter.socket_path)}")
    if getattr(adapter, "ssh_host", None):
        port = getattr(adapter, "ssh_params", {}).get("port")
        user = getattr(adapter, "ssh_params", {}).get("username")
        return _docker(f"ssh://{f'{user}@' if user else ''}{adapter.ssh_host}{f':{port}' if port else ''}")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.netloc or "docker" in parts.scheme:
        _unreadable(client, f"its base_url is {base!r}")
    address = f"tcp://{parts.netloc}"
    return _docker(address, *_tls(client, api)) if parts.scheme == "https" else _docker(address)


def podman_env(client: Any) -> Env:
    """Return the variables for the service that a podman.PodmanClient leads to."""
    base: Any = getattr(getattr(client, "api", client), "base_url", None)
    if hasattr(base, "geturl"):
        base = base.geturl()
    parts = urlsplit(str(base))
    if parts.scheme in ("unix", "http+unix"):
        path = unquote(parts.netloc) + parts.path.removesuffix("/")
        return (("CONTAINER_HOST", f"unix://{_absolute(path)}"),)
    if parts.scheme in ("ssh", "http+ssh"):
        return (("CONTAINER_HOST", f"ssh://{parts.netloc}{parts.path}"),)
    if parts.scheme in ("tcp", "http") and parts.netloc:
        return (("CONTAINER_HOST", f"tcp://{parts.netloc}"),)
    _unreadable(client, f"its base_url is {base!r}")


def kubeconfig(client: Any, namespace: str) -> str:
    """Return the path of a kubeconfig for the cluster that a client of the package kubernetes leads to."""
    configuration: Any = getattr(getattr(client, "api_client", client), "configuration", None)
    host = getattr(configuration, "host", None)
    if not isinstance(host, str) or not host.startswith(("http://", "https://")):
        _unreadable(client, "it has no api_client.configuration with the server's address")
    cluster: dict[str, Any] = {"server": host}
    if ca := getattr(configuration, "ssl_ca_cert", None):
        cluster["certificate-authority"] = _absolute(str(ca))
    if getattr(configuration, "verify_ssl", True) is False:
        cluster["insecure-skip-tls-verify"] = True
        cluster.pop("certificate-authority", None)
    if name := getattr(configuration, "tls_server_name", None):
        cluster["tls-server-name"] = name
    if proxy := getattr(configuration, "proxy", None):
        cluster["proxy-url"] = proxy
    user: dict[str, Any] = {}
    for key, field in (("client-certificate", "cert_file"), ("client-key", "key_file")):
        if path := getattr(configuration, field, None):
            user[key] = _absolute(str(path))
    keys: dict[str, str] = getattr(configuration, "api_key", None) or {}
    if token := keys.get("authorization") or keys.get("BearerToken"):
        user["token"] = token.removeprefix("Bearer ").removeprefix("bearer ")
    if getattr(configuration, "username", None):
        user["username"], user["password"] = configuration.username, configuration.password or ""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "client", "cluster": cluster}],
        "users": [{"name": "client", "user": user}],
        "contexts": [{"name": "client", "context": {"cluster": "client", "user": "client", "namespace": namespace}}],
        "current-context": "client",
    }
    return write_private("kubeconfig", content)


def write_private(name: str, content: object) -> str:
    """Write JSON, which is YAML too, to a file that only this user can read. Equal content has the same path."""
    text = json.dumps(content, sort_keys=True)
    path = Path(_directory()) / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.yaml"
    if not path.exists():
        path.touch(0o600)
        path.write_text(text)
    return str(path)


def _docker(host: str, *more: tuple[str, str]) -> Env:
    tls = {"DOCKER_TLS_VERIFY": "", "DOCKER_TLS": "", "DOCKER_CERT_PATH": ""} | dict(more)
    return (("DOCKER_HOST", host), ("DOCKER_CONTEXT", ""), *sorted(tls.items()))


def _tls(client: Any, api: Any) -> list[tuple[str, str]]:
    """Return the variables for the TLS files of a client. The engine wants them in one directory, under fixed names."""
    cert, verify = getattr(api, "cert", None), getattr(api, "verify", True)
    files: dict[str, str] = {}
    if cert:
        if not isinstance(cert, (tuple, list)) or len(cert) != 2:  # pyright: ignore[reportUnknownArgumentType]
            _unreadable(client, "its TLS certificate is not a pair of files")
        files["cert.pem"], files["key.pem"] = (_absolute(str(path)) for path in cert)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(verify, str):
        files["ca.pem"] = _absolute(verify)
    directory = Path(_directory()) / ("tls-" + hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:32])
    directory.mkdir(mode=0o700, exist_ok=True)
    for name, path in files.items():
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(path)
    return [("DOCKER_CERT_PATH", str(directory)), ("DOCKER_TLS_VERIFY" if verify else "DOCKER_TLS", "1")]


def _absolute(path: str) -> str:
    return os.path.abspath("/" + path.lstrip("/") if path.startswith("/") else path)


def _unreadable(client: object, why: str) -> NoReturn:
    raise ValidationError(
        f"client={type(client).__module__}.{type(client).__qualname__}: it cannot be read which engine this leads to ({why}): "
        "pass a client of the packages docker, podman or kubernetes, or leave it out and set DOCKER_HOST, CONTAINER_HOST or KUBECONFIG"
    )


_made: tuple[int, str] | None = None  # by which process, and where


def _directory() -> str:
    global _made
    if _made is None or _made[0] != os.getpid():
        _made = (os.getpid(), tempfile.mkdtemp(prefix="llm-sandbox-"))
    return _made[1]


@atexit.register
def _remove() -> None:
    if _made is not None and _made[0] == os.getpid():
        shutil.rmtree(_made[1], ignore_errors=True)
