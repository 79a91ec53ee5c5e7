"""Describes the names of llm-sandbox for test_original: with the release that is meant installed, write

python describe_original.py > original.json
"""

# pyright: basic

from __future__ import annotations

import dataclasses
import enum
import importlib
import importlib.metadata
import inspect
import json
from typing import Any

MODULES = (
    *("", "backends", "bubblewrap", "const", "core.config", "core.mixins", "core.session_base", "data", "docker", "exceptions"),
    *("interactive", "k8s_utils", "kubernetes", "language_handlers", "language_handlers.base", "language_handlers.cpp_handler"),
    *("language_handlers.factory", "language_handlers.go_handler", "language_handlers.java_handler"),
    *("language_handlers.javascript_handler", "language_handlers.python_handler", "language_handlers.r_handler"),
    *("language_handlers.ruby_handler", "language_handlers.runtime_context", "local.config", "mcp_server.const", "mcp_server.server"),
    *("mcp_server.types", "micromamba", "nsjail", "podman", "pool", "pool.base", "pool.config", "pool.docker_pool", "pool.exceptions"),
    *("pool.factory", "pool.kubernetes_pool", "pool.podman_pool", "pool.session", "security", "security.package_validators"),
    *("security.policy", "security.seccomp", "session", "windows.config", "windows_mxc", "wsl2_bubblewrap"),
)


def module_named(name: str) -> Any:
    return importlib.import_module(f"llm_sandbox.{name}" if name else "llm_sandbox")


def describe_module(name: str) -> dict[str, Any]:
    """Return what each public name of a module is that it defines or exports."""
    module = module_named(name)
    exported = set(getattr(module, "__all__", ()))
    found = {
        key: value
        for key, value in vars(module).items()
        if key in exported or (not key.startswith("_") and (is_constant(key, value) or getattr(value, "__module__", "") == module.__name__))
    }
    return {key: describe(value, module.__name__) for key, value in sorted(found.items())}


def is_constant(name: str, value: Any) -> bool:
    return name.isupper() and name != "TYPE_CHECKING" and isinstance(value, (str, int, float, tuple, list, dict, frozenset))


def describe(value: Any, module: str) -> dict[str, Any]:
    home = getattr(value, "__module__", module)
    if home != module and home.startswith("llm_sandbox"):
        return {"from": home}
    if issubclass(type(value), type):  # where Callable[[str], None] is none in Python 3.10
        return describe_class(value)
    if inspect.isroutine(value):
        return {"call": parameters(value)}
    return {"value": text_of(value)}


def describe_class(kind: type) -> dict[str, Any]:
    known: dict[str, Any] = {"bases": [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("llm_sandbox")]}
    if issubclass(kind, enum.Enum):
        return {**known, "members": {member.name: [member.value, repr(member)] for member in kind}}
    fields = getattr(kind, "model_fields", None)
    if fields is not None:
        known["fields"] = {name: text_of(f.get_default(call_default_factory=True)) for name, f in fields.items()}
        known["frozen"] = bool(kind.model_config.get("frozen"))  # type: ignore[attr-defined]  # pyright: ignore
    elif dataclasses.is_dataclass(kind):
        known["fields"] = {field.name: default_of(field) for field in dataclasses.fields(kind)}
        known["frozen"] = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # pyright: ignore
    elif inspect.isfunction(kind.__init__):
        known["call"] = parameters(kind)
    if issubclass(kind, Exception):
        known["texts"] = texts_of(kind)
    hidden = {"model_post_init"}  # a hook of pydantic
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in hidden or not of_package(kind, name):
            continue
        if isinstance(member, property):
            known.setdefault("properties", []).append(name)
        elif isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
            known.setdefault("methods", {})[name] = parameters(getattr(kind, name))
    return known


def of_package(kind: type, name: str) -> bool:
    """Whether the member is of this package, and is no validator of pydantic."""
    owner = next(base for base in kind.__mro__ if name in vars(base))
    validators = getattr(owner, "__pydantic_decorators__", None)
    checks = {*validators.field_validators, *validators.model_validators} if validators else set[str]()
    return owner.__module__.startswith("llm_sandbox") and name not in checks


def parameters(value: Any) -> list[str]:
    """Return each parameter as name=default, after * if it is passed by name only."""
    marks: dict[Any, str] = {
        inspect.Parameter.KEYWORD_ONLY: "*",
        inspect.Parameter.VAR_POSITIONAL: "*args ",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return [
        marks.get(p.kind, "") + p.name + ("" if p.default is p.empty else f"={text_of(p.default)}")
        for p in inspect.signature(value).parameters.values()
    ]


def texts_of(kind: type[Exception]) -> list[str]:
    """Return what an exception says, with the arguments that it needs and with all."""
    needed = {"args", "kwargs"}
    names = [p for p in inspect.signature(kind).parameters.values() if p.name not in needed]
    some = [f"<{p.name}>" for p in names if p.default is p.empty]
    return [str(kind(*some)), str(kind(*(f"<{p.name}>" for p in names)))]


def default_of(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return type(made).__name__ if isinstance(made, float) else text_of(made)  # a float is the time
    return "" if field.default is dataclasses.MISSING else text_of(field.default)


def text_of(value: Any) -> str:
    text = repr(list(value) if isinstance(value, dict) else value)
    return type(value).__name__ if " at 0x" in text or len(text) > 2000 else text


def write(modules: dict[str, dict[str, Any]]) -> None:
    """Print one line for each name."""
    print(f'{{"version": {json.dumps(importlib.metadata.version("llm-sandbox"))}, "modules": {{')
    for name, found in modules.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
        print(f" {json.dumps(name)}: {{\n{lines}\n }}{'' if name == MODULES[-1] else ','}")
    print("}}")


if __name__ == "__main__":
    write({name: describe_module(name) for name in MODULES})
