"""Policies for Python code that are ready to use."""

from __future__ import annotations

from typing import Final

from llm_sandbox.security.policy import RestrictedModule, SecurityIssueSeverity, SecurityPattern, SecurityPolicy

_LOW, _MEDIUM, _HIGH = SecurityIssueSeverity.LOW, SecurityIssueSeverity.MEDIUM, SecurityIssueSeverity.HIGH

_PATTERNS: Final = {
    "Runs a line in a shell": r"\bos\s*\.\s*(?:system|popen)\s*\(",
    "Destroys a file system": r"\brm\s+-(?:rf|fr)\s+/|\bmkfs\b|\bdd\s+if=",
    "Starts a program": r"\bsubprocess\s*\.\s*\w+\s*\(|\bos\s*\.\s*(?:exec|spawn|posix_spawn|fork)\w*\s*\(",
    "Deletes files": r"\bos\s*\.\s*(?:remove|unlink|rmdir|removedirs)\s*\(|\bshutil\s*\.\s*rmtree\s*\(|\.\s*unlink\s*\(",
    "Runs text as code": r"(?<![\w.])(?:eval|exec)\s*\(",
    "Makes code of text": r"(?<![\w.])(?:compile|__import__)\s*\(",
    "Finds names at run time": r"(?<![\w.])(?:getattr|setattr|delattr|globals|locals|vars)\s*\(",
    "Writes a file": r"(?<![\w.])open\s*\([^)\n]*,\s*(?:mode\s*=\s*)?['\"][^'\"\n]*[wax+]",
    "Opens a file": r"(?<![\w.])open\s*\(",
    "Reads the environment": r"\bos\s*\.\s*(?:environ|getenv)\b",
    "Opens a socket": r"\bsocket\s*\.\s*(?:socket|create_connection)\s*\(",
    "Opens a raw socket": r"\bSOCK_RAW\b",
    "Loads a pickle, which may have code": r"\bpickle\s*\.\s*loads?\s*\(",
    "Makes a request": r"\b(?:requests|httpx)\s*\.\s*\w+\s*\(|\burlopen\s*\(",
    "Waits": r"\btime\s*\.\s*sleep\s*\(",
    "Uses the operating system": r"(?<![\w.])os\s*\.\s*\w+",
}

_SHELLS = {"Runs a line in a shell": _HIGH, "Destroys a file system": _HIGH}
_SYSTEM = {**_SHELLS, "Starts a program": _HIGH, "Deletes files": _MEDIUM, "Opens a raw socket": _HIGH}

_PRESETS: Final[dict[str, tuple[SecurityIssueSeverity, dict[str, SecurityIssueSeverity], dict[str, SecurityIssueSeverity]]]] = {
    "minimal": (_HIGH, _SHELLS, {}),
    "development": (_HIGH, _SHELLS, {"ctypes": _HIGH}),
    "educational": (
        _MEDIUM,
        {**_SYSTEM, "Runs text as code": _LOW},
        {"subprocess": _HIGH, "ctypes": _HIGH, "os": _LOW, "socket": _LOW},
    ),
    "data_science": (
        _MEDIUM,
        {
            **_SYSTEM,
            "Runs text as code": _MEDIUM,
            "Writes a file": _LOW,
            "Loads a pickle, which may have code": _LOW,
            "Makes a request": _LOW,
        },
        {"subprocess": _HIGH, "ctypes": _HIGH, "socket": _MEDIUM, "requests": _LOW, "urllib": _LOW},
    ),
    "web_scraping": (
        _MEDIUM,
        {**_SYSTEM, "Runs text as code": _MEDIUM, "Opens a socket": _MEDIUM, "Makes a request": _LOW, "Waits": _LOW},
        {"subprocess": _HIGH, "ctypes": _HIGH, "socket": _MEDIUM, "requests": _LOW, "urllib": _LOW},
    ),
    "production": (
        _LOW,
        {
            **_SYSTEM,
            "Runs text as code": _HIGH,
            "Makes code of text": _MEDIUM,
            "Writes a file": _MEDIUM,
            "Reads the environment": _LOW,
            "Opens a socket": _MEDIUM,
        },
        {"os": _MEDIUM, "subprocess": _HIGH, "ctypes": _HIGH, "socket": _MEDIUM, "multiprocessing": _MEDIUM},
    ),
    "strict": (
        _LOW,
        {
            **_SYSTEM,
            "Uses the operating system": _MEDIUM,
            "Runs text as code": _HIGH,
            "Makes code of text": _HIGH,
            "Finds names at run time": _MEDIUM,
            "Opens a file": _MEDIUM,
            "Opens a socket": _MEDIUM,
        },
        {
            "os": _HIGH,
            "sys": _MEDIUM,
            "subprocess": _HIGH,
            "ctypes": _HIGH,
            "socket": _HIGH,
            "multiprocessing": _HIGH,
            "threading": _MEDIUM,
            "shutil": _MEDIUM,
            "pathlib": _MEDIUM,
            "tempfile": _MEDIUM,
            "importlib": _HIGH,
            "pickle": _HIGH,
        },
    ),
}


def get_security_policy(preset: str) -> SecurityPolicy:
    """Return a new policy by its name, from the most lenient: minimal, development, educational, data_science, web_scraping,
    production or strict.

    They are for Python. Policies of the command `llmsandbox` have the same names, read every language and do not depend on spelling.
    """
    if preset not in _PRESETS:
        raise ValueError(f"Unknown security preset {preset!r}: use one of {', '.join(_PRESETS)}")
    threshold, patterns, modules = _PRESETS[preset]
    return SecurityPolicy(
        severity_threshold=threshold,
        patterns=[SecurityPattern(pattern=_PATTERNS[name], description=name, severity=severity) for name, severity in patterns.items()],
        restricted_modules=[
            RestrictedModule(name=name, description=f"Imports {name}", severity=severity) for name, severity in modules.items()
        ],
    )
