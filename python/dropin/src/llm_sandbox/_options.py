"""Turns `runtime_configs` into flags of the server, or says what cannot be kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from llm_sandbox._engine import Engine
from llm_sandbox.exceptions import ValidationError

# How the engine's process is started, which is the guest agent here and never the caller's.
_STARTING = {"detach", "tty", "stdin_open", "command", "auto_remove", "remove"}
# Which the server has flags for, with other defaults than these.
_LIMITS = {"mem_limit", "nano_cpus", "cpu_count", "cpu_quota", "cpu_period", "pids_limit"}
_SIZES = {"mem_reservation", "memswap_limit", "shm_size"}
_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30, "t": 40, "tb": 40, "tib": 40}


@dataclass
class Options:
    """What `runtime_configs` ask for besides the flags of the engine."""

    engine: Engine
    env: dict[str, str] = field(default_factory=dict[str, str])
    timeout: float | None = None
    network: str | None = None


def parse_size(name: str, value: object) -> int:
    """Return a number of bytes, of which a text may have a unit such as in "512m" and "1GB"."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value)
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in _UNITS:
        raise ValidationError(f"runtime_configs[{name!r}]: {value!r} is not a size: use a number of bytes, or one with a unit such as '512m'")
    return int(float(match[1]) * (1 << _UNITS[match[2].lower()]))


def environment(value: object) -> dict[str, str]:
    """Return environment variables, of which a list has NAME=VALUE."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {str(name): "" if text is None else str(text) for name, text in pairs}
    if isinstance(value, (list, tuple)):
        parts = [str(item).partition("=") for item in cast("Iterable[object]", value)]
        return {name: text for name, _, text in parts}
    raise ValidationError(f"environment: {value!r} is neither a dict nor a list of NAME=VALUE")


def apply(engine: Engine, configs: Mapping[str, Any]) -> Options:
    """Return what the engine and a session are to have."""
    options = Options(engine)
    if "memory" in configs:
        raise ValidationError("runtime_configs['memory'] is no setting of containers: use 'mem_limit'")
    for name, value in configs.items():
        if value is None or name in _STARTING:
            continue
        if name == "environment":
            options.env = environment(value)
        elif name == "timeout":
            options.timeout = _positive(name, value)
        elif name in _LIMITS or engine.backend not in ("docker", "podman", "micromamba"):
            _own_option(options, name, value, configs)
        else:
            _engine_option(options, name, value)
    return options


def _engine_option(options: Options, name: str, value: object) -> None:
    """Pass a setting on: Docker, Podman and Micromamba have those of the engine."""
    if name in _SIZES and isinstance(value, (int, str)) and str(value) != "-1":
        value = parse_size(name, value)
    if name in ("network_mode", "network"):
        options.engine = replace(options.engine, reach=str(value))
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        listed = cast("object", sorted(cast("set[str]", value)) if isinstance(value, (set, frozenset)) else value)
        if not listed:
            return
        try:
            text = json.dumps(listed)
        except TypeError as e:
            raise ValidationError(f"runtime_configs[{name!r}] cannot be sent to the engine: {e}") from None
    else:
        text = str(value)
    options.engine = options.engine.with_flags("--runtime-option", f"{name}={text}")


def _own_option(options: Options, name: str, value: Any, configs: Mapping[str, Any]) -> None:
    """Translate a setting for the local backend and Kubernetes, which have no container engine that knows it."""
    local = options.engine.backend == "local"

    def flags(*add: str) -> None:
        options.engine = options.engine.with_flags(*add)

    if name == "mem_limit":
        flags("--memory", str(parse_size(name, value) or "unlimited"))
    elif name == "nano_cpus":
        flags("--cpus", _number(_positive(name, value) / 1e9))
    elif name == "cpu_count":
        flags("--cpus", _number(_positive(name, value)))
    elif name == "cpu_quota":
        if int(value) > 0:
            flags("--cpus", _number(int(value) / int(configs.get("cpu_period") or 100_000)))
    elif name == "cpu_period" and "cpu_quota" in configs:
        pass
    elif name == "pids_limit" and options.engine.backend != "kubernetes":
        flags("--pids", "unlimited" if int(value) <= 0 else _number(int(value)))
    elif name == "user":
        flags("--user", str(value))
    elif name == "read_only":
        if not value:
            flags("--writable-root")
    elif name in ("network_mode", "network") and value in ("none", "bridge", "default"):
        options.network = "none" if value == "none" else "full"
    elif name == "network_disabled":
        options.network = "none" if value else options.network
    elif name == "labels":
        for label, text in environment(value).items():
            flags("--label", f"{label}={text}")
    elif name == "volumes" and local:
        for mount in _volumes(value):
            flags("--mount", mount)
    elif name == "cap_drop" or (name == "privileged" and not value):
        pass  # code has no capabilities
    elif name == "security_opt" and all(re.fullmatch("no-new-privileges([:=]true)?", str(item)) for item in value):
        pass  # which always holds
    elif name == "tmpfs" and all(str(path).rstrip("/") in ("/tmp", "/sandbox", "/dev/shm") for path in value):
        pass  # which are private and can be written to
    else:
        where = "the local backend" if local else "Kubernetes"
        other = "use backend='docker'" if local else "use pod_manifest"
        raise ValidationError(f"runtime_configs[{name!r}]={value!r} cannot be kept on {where}: leave it out, or {other}")


def _volumes(value: object) -> Iterable[str]:
    """Yield mounts, of which code on the local backend can write to none."""
    if isinstance(value, Mapping):
        for source, place in cast("Mapping[str, Mapping[str, str]]", value).items():
            yield _mount(source, place["bind"], place.get("mode", "rw"))
        return
    for item in cast("Iterable[str]", value):
        source, _, rest = item.partition(":")
        target, _, mode = rest.partition(":")
        yield _mount(source, target, mode or "rw")


def _mount(source: str, target: str, mode: str) -> str:
    if mode.partition(",")[0] != "ro":
        raise ValidationError(
            f"runtime_configs['volumes']: {source} cannot be written to from the local backend: use the mode 'ro' and copy_from_runtime, or backend='docker'"
        )
    return f"{source}:{target}"


def _positive(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0
    if not 0 < number < float("inf"):
        raise ValidationError(f"runtime_configs[{name!r}]: {value!r} is not a positive number")
    return number


def _number(value: float) -> str:
    return format(value, "f").rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
