"""Sessions in containers of a Docker daemon, which the tests start. They need root, Docker and mmdebstrap."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from llm_sandbox import (
    ArtifactSandboxSession,
    ContainerError,
    InteractiveSandboxSession,
    SandboxSession,
    SandboxTimeoutError,
    ValidationError,
)
from llm_sandbox.exceptions import ImagePullError
from llm_sandbox.pool import PoolConfig, create_pool_manager

IMAGE = "llm-sandbox-test/python:1"
PACKAGES = "ca-certificates,python3,python3-pip,python3-venv,python-is-python3,procps"
# Where a containerd of the machine listens, the daemon would use that. The socket comes from this process, so that the first
# client waits until the daemon serves.
START = """
set -e
mkdir -p /run/containerd "$1/containerd"
mount --bind "$1/containerd" /run/containerd
shift
export LISTEN_FDS=1 LISTEN_PID=$$
exec "$@"
"""


def lack(reason: str) -> Any:
    if os.environ.get("LLMSANDBOX_REQUIRE"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    """The environment of commands for a daemon of the tests' own, which has a base image."""
    programs = [name for name in ("docker", "dockerd", "mmdebstrap", "unshare") if shutil.which(name) is None]
    if os.getuid() != 0 or programs:
        lack(f"these tests need root and {', '.join(programs) or 'nothing else'}")
    # Short, as a daemon's sockets want it.
    with tempfile.TemporaryDirectory(prefix="llmsandbox-dropin-", dir="/tmp", ignore_cleanup_errors=True) as place:
        with socket.socket(socket.AF_UNIX) as listening, Path(place, "log").open("wb") as log:
            listening.bind(f"{place}/docker.sock")
            listening.listen(64)
            Path(place, "daemon.json").write_text("{}")
            options = ["--host=fd://", "--bridge=none", "--iptables=false", "--ip6tables=false", f"--config-file={place}/daemon.json"]
            places = [f"--data-root={place}/data", f"--exec-root={place}/exec", f"--pidfile={place}/pid"]
            daemon = subprocess.Popen(
                ["bash", "-c", f"exec 3<&{listening.fileno()}; exec unshare -m /bin/sh -c \"$0\" sh \"$@\"", START, place, "dockerd", *options, *places],
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "TMPDIR": place},
            )
        try:
            env = {**os.environ, "DOCKER_HOST": f"unix://{place}/docker.sock"}
            subprocess.run(["docker", "version"], env=env, check=True, capture_output=True, timeout=120)
            subprocess.run(["docker", "import", "-c", 'CMD ["python3"]', base(), IMAGE], env=env, check=True, capture_output=True, timeout=120)
            yield env
        finally:
            daemon.terminate()
            daemon.wait(60)


def base() -> str:
    """Return the file of a root file system, which is made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llmsandbox-test"
    file = cache / "dropin-python.tar"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}.tar")
        release = subprocess.run(["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", f"--include={PACKAGES}", release, str(made)], check=True, timeout=600)
        made.rename(file)
    return str(file)


@pytest.fixture
def docker(engine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that runs the command docker. All sessions use its daemon."""
    monkeypatch.setenv("DOCKER_HOST", engine["DOCKER_HOST"])

    def run(*args: str) -> str:
        return subprocess.run(["docker", *args], env=engine, check=True, capture_output=True, text=True, timeout=120).stdout.strip()

    yield run
    for container in run("ps", "-aq").split():  # the engine is about to remove it, or else this takes too long
        subprocess.run(["docker", "wait", container], env=engine, capture_output=True, timeout=60)


def test_session(docker: Any, tmp_path: Path) -> None:
    pieces: list[str] = []
    with SandboxSession(image=IMAGE) as session:
        assert session.run("import os; print(os.getcwd(), os.getuid())", on_stdout=pieces.append).stdout == "/sandbox 1000\n"
        assert "".join(pieces) == "/sandbox 1000\n"
        assert docker("inspect", "-f", "{{.State.Status}}", session.container.id) == "running"
        assert session.execute_command("for p in python pip sh find ls cat; do command -v $p; done").exit_code == 0
        with pytest.raises(SandboxTimeoutError):
            session.run("while True: pass", timeout=1)
        session.copy_to_runtime(__file__, "/sandbox/d/f.py")
        session.copy_from_runtime("/sandbox/d", str(tmp_path))
        assert (tmp_path / "d" / "f.py").read_text() == Path(__file__).read_text()
        with SandboxSession(backend="docker", container_id=session.container.short_id) as other:
            assert other.execute_command("ls d").stdout == "f.py\n"


def test_runtime_configs(docker: Any) -> None:
    configs = {
        "mem_limit": "256MB",
        "user": "root",
        "read_only": False,
        "environment": {"A": "b"},
        "labels": {"team": "research"},
        "security_opt": ["no-new-privileges:true"],
        "cap_drop": ["ALL"],
        "tty": True,
    }
    with SandboxSession(image=IMAGE, runtime_configs=configs) as session:
        assert session.run("import os; print(os.getuid(), os.environ['A']); open('/opt/x', 'w')").stdout == "0 b\n"
        found = docker("inspect", "-f", '{{.HostConfig.Memory}} {{.HostConfig.NetworkMode}} {{index .Config.Labels "team"}}', session.container.id)
        assert found == f"{256 << 20} none research"


def test_mounts(docker: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "f").write_text("shared")
    with SandboxSession(image=IMAGE, runtime_configs={"volumes": {str(tmp_path): {"bind": "/data", "mode": "ro"}}}) as session:
        assert session.run("print(open('/data/f').read())").stdout == "shared\n"
    with pytest.warns(DeprecationWarning, match="mounts"):
        session = SandboxSession(image=IMAGE, mounts={"Type": "bind", "Source": str(tmp_path), "Target": "/data", "ReadOnly": True})
    with session:
        assert session.run("print(open('/data/f').read())").stdout == "shared\n"


def test_dockerfile(docker: Any, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo built >/built\n")
    before = docker("images", "-aq")
    with SandboxSession(dockerfile=str(tmp_path / "Dockerfile")) as session:
        assert session.execute_command("cat /built").stdout == "built\n"
    assert docker("images", "-q").split() and set(before.split()) <= set(docker("images", "-aq").split())


def test_an_existing_container(docker: Any, tmp_path: Path) -> None:
    container = docker("run", "-d", "--network=none", IMAGE, "sleep", "600")
    pieces: list[str] = []
    try:
        session: Any = SandboxSession(container_id=container)
        with session:
            assert session.container.id == container
            assert session.run("import os; open('kept', 'w').write('x'); print(os.getcwd())").stdout == "/sandbox\n"
            assert session.execute_command("cat kept; exit 3").exit_code == 3
            assert session.run("print(1)", on_stdout=pieces.append).stdout == "".join(pieces) == "1\n"
            with pytest.raises(SandboxTimeoutError):
                session.run("while True: pass", timeout=1)
            session.copy_to_runtime(__file__, "/opt/there/f.py")
            session.copy_from_runtime("/opt/there/f.py", str(tmp_path / "back.py"))
            assert (tmp_path / "back.py").read_text() == Path(__file__).read_text()
            assert session.get_archive("/sandbox/kept")[1]["size"] == 1
            with pytest.raises(FileNotFoundError):
                session.copy_from_runtime("/none", str(tmp_path / "none"))
        assert docker("exec", container, "cat", "/sandbox/kept", "/opt/there/f.py").startswith("x")
    finally:
        docker("rm", "-f", container)


def test_what_is_not_there(docker: Any) -> None:
    with pytest.raises(ContainerError, match="Container 0123456789abcdef not found"):
        SandboxSession(backend="docker", container_id="0123456789abcdef").open()
    with pytest.raises(ImagePullError, match="llm-sandbox-test/none"):
        SandboxSession(image="llm-sandbox-test/none:1").open()


def test_commit(docker: Any) -> None:
    try:
        with SandboxSession(image=IMAGE, commit_container=True, commit_image_tag="llm-sandbox-test/committed:1") as session:
            session.run("open('committed', 'w').write('x')")
        with SandboxSession(image="llm-sandbox-test/committed:1") as session:
            assert session.execute_command("cat committed").stdout == "x"
        with SandboxSession(image="llm-sandbox-test/committed:1", commit_container=True) as session:
            session.run("open('committed', 'w').write('again')")  # to the image's own tag
        with SandboxSession(image="llm-sandbox-test/committed:1") as session:
            assert session.execute_command("cat committed").stdout == "again"
    finally:
        docker("rmi", "-f", "llm-sandbox-test/committed:1")


def test_pool(docker: Any) -> None:
    with create_pool_manager(backend="docker", image=IMAGE, config=PoolConfig(max_pool_size=1)) as pool:
        used: list[str] = []
        for _ in range(2):
            with SandboxSession(pool=pool) as session:
                assert session.run("import os; print(os.path.exists('/sandbox/mine')); open('mine', 'w')").stdout == "False\n"
                used.append(session.container.id)
        assert used[0] == used[1]


def test_artifacts_and_interactive(docker: Any) -> None:
    with ArtifactSandboxSession(image=IMAGE) as session:
        result = session.run("import os; os.makedirs('artifacts', exist_ok=True); print(1)")
        assert (result.stdout, result.plots) == ("1\n", [])
    with InteractiveSandboxSession(backend="docker", image=IMAGE) as interactive:
        interactive.run("x = 41")
        assert interactive.run("x + 1").stdout.endswith(": 42\n")


def test_client_is_where_code_runs(docker: Any, engine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    sdk: Any = import_module("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    client = sdk.DockerClient(base_url=engine["DOCKER_HOST"])
    try:
        with SandboxSession(client=client, image=IMAGE) as session:
            assert client.containers.get(session.container.id).status == "running"
    finally:
        client.close()
    with pytest.raises(ValidationError):
        SandboxSession(client=object(), image=IMAGE)
