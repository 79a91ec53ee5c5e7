"""What sessions ask of engines: flags, addresses and manifests, without an engine."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llm_sandbox import ArtifactSandboxSession, InteractiveSandboxSession, SandboxBackend, SandboxSession, ValidationError
from llm_sandbox._connections import docker_env, kubeconfig, podman_env
from llm_sandbox._engine import Engine
from llm_sandbox._options import apply, parse_size
from llm_sandbox.bubblewrap import BubblewrapSession
from llm_sandbox.docker import SandboxDockerSession
from llm_sandbox.exceptions import MissingDependencyError
from llm_sandbox.kubernetes import SandboxKubernetesSession, pod_template
from llm_sandbox.local.config import LocalSandboxConfig
from llm_sandbox.local.session import LocalSession
from llm_sandbox.micromamba import MicromambaSession
from llm_sandbox.nsjail import NsjailSession
from llm_sandbox.podman import SandboxPodmanSession


def flags(session: Any) -> list[str]:
    return list(session._engine.flags)


def docker_client(**api: Any) -> Any:
    return SimpleNamespace(api=SimpleNamespace(**{"base_url": "http+docker://localhost", "cert": None, "verify": True, **api}))


KINDS: list[tuple[dict[str, Any], type]] = [
    ({}, LocalSession),
    ({"image": "ghcr.io/vndee/sandbox-python-311-bullseye"}, LocalSession),
    ({"image": "python:3.13"}, SandboxDockerSession),
    ({"dockerfile": "Dockerfile"}, SandboxDockerSession),
    ({"client": docker_client(base_url="http://192.0.2.1:2375")}, SandboxDockerSession),
    ({"container_id": "0123456789ab"}, SandboxDockerSession),
    ({"container_id": "sb-1"}, LocalSession),
    ({"backend": "Docker"}, SandboxDockerSession),
    ({"backend": SandboxBackend.PODMAN}, SandboxPodmanSession),
    ({"backend": "micromamba"}, MicromambaSession),
    ({"backend": "kubernetes"}, SandboxKubernetesSession),
    ({"backend": "nsjail"}, NsjailSession),
    ({"backend": "bubblewrap"}, BubblewrapSession),
]


@pytest.mark.parametrize(("kwargs", "kind"), KINDS)
def test_which_backend(kwargs: dict[str, Any], kind: type) -> None:
    assert type(SandboxSession(**kwargs)) is kind


def test_use_kubernetes() -> None:
    with pytest.warns(DeprecationWarning, match="use_kubernetes"):
        assert isinstance(SandboxSession(use_kubernetes=True), SandboxKubernetesSession)


def test_equal_settings_share_a_server() -> None:
    assert Engine("docker", ("--image", "a")).client() is Engine("docker", ("--image", "a")).client()
    assert Engine("docker", ("--image", "a")).client() is not Engine("docker", ("--image", "b")).client()
    there = Engine("docker", env=(("DOCKER_HOST", "tcp://192.0.2.1:2375"),))
    assert there.client() is not Engine("docker").client() and there.arguments() != Engine("docker").arguments()


def test_a_server_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMSANDBOX_URL", "http://127.0.0.1:1")
    assert "127.0.0.1:1" in repr(Engine().client())
    asked: list[dict[str, Any]] = [{"backend": "docker"}, {"runtime_configs": {"mem_limit": "1g"}}, {"writable_root": True}]
    for kwargs in asked:
        with pytest.raises(ValidationError, match="LLMSANDBOX_URL names a server"):
            SandboxSession(**kwargs).open()


def test_runtime_configs_of_engines() -> None:
    configs = {
        "mem_limit": "1GB",
        "cpu_count": 2,
        "pids_limit": -1,
        "user": "1000:1000",
        "read_only": True,
        "network_mode": "bridge",
        "cap_drop": ("ALL",),
        "security_opt": ["no-new-privileges:true"],
        "tmpfs": {"/tmp": "size=64m"},
        "shm_size": "64m",
        "detach": True,
        "tty": True,
        "environment": ["A=b", "C"],
        "timeout": 30,
    }
    options = apply(Engine("docker"), configs)
    assert list(options.engine.flags) == [
        *("--memory", "1073741824"),
        *("--cpus", "2"),
        *("--pids", "unlimited"),
        *("--runtime-option", "user=1000:1000"),
        *("--runtime-option", "read_only=true"),
        *("--runtime-option", "network_mode=bridge"),
        *("--runtime-option", 'cap_drop=["ALL"]'),
        *("--runtime-option", 'security_opt=["no-new-privileges:true"]'),
        *("--runtime-option", 'tmpfs={"/tmp": "size=64m"}'),
        *("--runtime-option", "shm_size=67108864"),
    ]
    assert (options.env, options.timeout, options.network) == ({"A": "b", "C": ""}, 30, None)
    assert configs["cap_drop"] == ("ALL",)


def test_runtime_configs_of_this_machine() -> None:
    configs = {
        "mem_limit": "512m",
        "nano_cpus": 1_500_000_000,
        "user": "root",
        "read_only": False,
        "network_mode": "bridge",
        "volumes": {"/srv/data": {"bind": "/data", "mode": "ro"}},
        "security_opt": ("no-new-privileges:true",),
    }
    options = apply(Engine(), configs)
    assert list(options.engine.flags) == [
        *("--memory", "536870912"),
        *("--cpus", "1.5"),
        *("--user", "root"),
        "--writable-root",
        *("--mount", "/srv/data:/data"),
    ]
    assert options.network == "full"
    assert apply(Engine(), {"cpu_quota": 50_000, "cpu_period": 200_000}).engine.flags == ("--cpus", "0.25")


@pytest.mark.parametrize(
    "configs",
    [
        {"privileged": True},
        {"cap_add": ["NET_ADMIN"]},
        {"network_mode": "host"},
        {"security_opt": ["seccomp=unconfined"]},
        {"volumes": ["/srv:/srv:rw"]},
        {"devices": ["/dev/fuse"]},
        {"memory": "1g"},
        {"mem_limit": "much"},
        {"timeout": -1},
        {"no_such_setting": 1},
    ],
)
def test_what_cannot_be_kept_is_an_error(configs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SandboxSession(runtime_configs=configs)


def test_sizes() -> None:
    assert [parse_size("x", value) for value in (5, "5", "5b", "1k", "1KB", "1.5g", "1GiB")] == [5, 5, 5, 1024, 1024, 1610612736, 1 << 30]


def test_images() -> None:
    assert flags(SandboxDockerSession(image="python:3.13", keep_template=True)) == ["--image", "python:3.13", "--keep-image"]
    assert flags(SandboxDockerSession(dockerfile="x/Dockerfile")) == ["--dockerfile", "x/Dockerfile"]
    with pytest.raises(ValueError, match="Only one of 'image' or 'dockerfile'"):
        SandboxDockerSession(image="a", dockerfile="b")
    assert flags(MicromambaSession(environment="web")) == ["--micromamba-env", "web"]
    with pytest.raises(ValidationError, match="commit_container needs an image"):
        LocalSession(commit_container=True)


def test_native_sessions() -> None:
    assert flags(BubblewrapSession(sandbox_config=LocalSandboxConfig(memory_limit_bytes=1 << 28))) == ["--memory", "268435456"]
    assert BubblewrapSession().config.default_timeout == 60
    assert BubblewrapSession(sandbox_config=LocalSandboxConfig(network="host"))._network == "full"
    with pytest.raises(ValueError, match="Native sandboxes do not support: image, runtime_configs"):
        BubblewrapSession(image="a", runtime_configs={"user": "root"})
    with pytest.raises(TypeError, match="no_such"):
        BubblewrapSession(no_such=1)
    with pytest.raises(ValueError, match="execution_timeout must be finite and positive"):
        BubblewrapSession(execution_timeout=0)
    with pytest.raises(ValidationError, match="cpu_time_limit cannot be kept"):
        BubblewrapSession(sandbox_config=LocalSandboxConfig(cpu_time_limit=1))
    for name in ("windows-mxc", "wsl2-bubblewrap"):
        with pytest.raises(MissingDependencyError, match="requires Windows"):
            SandboxSession(backend=name)


def test_docker_clients(tmp_path: Path) -> None:
    assert dict(docker_env(docker_client(_custom_adapter=SimpleNamespace(socket_path="//var/run/x.sock"))))["DOCKER_HOST"] == "unix:///var/run/x.sock"
    assert dict(docker_env(docker_client(base_url="http://192.0.2.1:2375")))["DOCKER_HOST"] == "tcp://192.0.2.1:2375"
    files = [tmp_path / name for name in ("c", "k", "a")]
    for file in files:
        file.write_text(file.name)
    cert, key, ca = map(str, files)
    found = dict(docker_env(docker_client(base_url="https://docker.example.org:2376", cert=(cert, key), verify=ca)))
    assert (found["DOCKER_HOST"], found["DOCKER_TLS_VERIFY"]) == ("tcp://docker.example.org:2376", "1")
    directory = Path(found["DOCKER_CERT_PATH"])
    assert {path.name: path.read_text() for path in directory.iterdir()} == {"cert.pem": "c", "key.pem": "k", "ca.pem": "a"}
    for unreadable in (object(), docker_client(base_url="http+docker://localnpipe"), SimpleNamespace(api=SimpleNamespace())):
        with pytest.raises(ValidationError, match="it cannot be read which engine this leads to"):
            SandboxSession(backend="docker", client=unreadable)


def test_clients_of_docker_and_podman_themselves() -> None:
    docker: Any = import_module("docker")
    with closing(docker.DockerClient(base_url="unix:///run/own.sock", version="1.41")) as client:
        assert dict(docker_env(client))["DOCKER_HOST"] == "unix:///run/own.sock"
    with closing(docker.DockerClient(base_url="tcp://127.0.0.1:2375", version="1.41")) as client:
        assert dict(docker_env(client))["DOCKER_HOST"] == "tcp://127.0.0.1:2375"
    podman: Any = import_module("podman")
    for url in ("unix:///run/own.sock", "tcp://127.0.0.1:8080"):
        with podman.PodmanClient(base_url=url) as client:
            assert podman_env(client) == (("CONTAINER_HOST", url),)


def test_clients_of_kubernetes() -> None:
    configuration = SimpleNamespace(
        host="https://cluster.example.org:6443",
        ssl_ca_cert="/etc/ca.crt",
        cert_file=None,
        key_file=None,
        verify_ssl=True,
        api_key={"authorization": "Bearer secret"},
    )
    path = Path(kubeconfig(SimpleNamespace(api_client=SimpleNamespace(configuration=configuration)), "team"))
    content = json.loads(path.read_text())
    assert path.stat().st_mode & 0o077 == 0
    assert content["clusters"][0]["cluster"] == {"server": "https://cluster.example.org:6443", "certificate-authority": "/etc/ca.crt"}
    assert content["users"][0]["user"] == {"token": "secret"}
    with pytest.raises(ValidationError, match="cannot be read"):
        SandboxSession(backend="kubernetes", client=object())


def test_pod_manifests() -> None:
    manifest: dict[str, Any] = {
        "metadata": {"name": "mine", "namespace": "team", "labels": {"app": "x"}},
        "spec": {
            "containers": [
                {
                    "image": "python:3.13",
                    "command": ["sleep", "1h"],
                    "tty": True,
                    "securityContext": {"runAsUser": 1000},
                    "volumeMounts": {"name": "work", "mountPath": "/sandbox"},
                }
            ],
            "volumes": [{"name": "work", "emptyDir": {}}, {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}],
        },
    }
    before = copy.deepcopy(manifest)
    session = SandboxKubernetesSession(pod_manifest=manifest)
    assert manifest == before and session.namespace == "team"
    found = flags(session)
    assert found[:2] == ["--namespace", "team"] and found[2] == "--pod-template"
    assert json.loads(Path(found[3]).read_text()) == {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "containers": [{"image": "python:3.13", "tty": True, "securityContext": {"runAsUser": 1000}, "volumeMounts": []}],
            "volumes": [{"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}],
        },
    }
    assert pod_template({"spec": {"containers": []}}, "/sandbox")["metadata"] == {}
    cache: dict[str, Any] = {"spec": {"containers": [{"volumeMounts": [{"name": "c", "mountPath": "/cache"}]}], "volumes": [{"name": "c", "emptyDir": {}}]}}
    assert pod_template(cache, "/sandbox")["spec"]["volumes"] == [{"name": "c", "emptyDir": {"sizeLimit": "1Gi"}}]
    assert flags(SandboxKubernetesSession(kube_namespace="other", image="i:1")) == ["--namespace", "other", "--image", "i:1"]


def test_importing_needs_no_client_library() -> None:
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("docker", "podman", "kubernetes"):
            raise RuntimeError(f"{name} is imported")
sys.meta_path.insert(0, Refuse())
import llm_sandbox.docker, llm_sandbox.podman, llm_sandbox.kubernetes, llm_sandbox.micromamba, llm_sandbox.pool.kubernetes_pool
llm_sandbox.SandboxSession(backend="podman"); llm_sandbox.SandboxSession(backend="kubernetes")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_sessions_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["llmsandbox", "serve", "--until-stdin-closes", "--listen", "127.0.0.1:0", "--log", "error"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin and server.stdout
        ready = json.loads(server.stdout.readline())
        monkeypatch.setenv("LLMSANDBOX_URL", ready["url"])
        monkeypatch.setenv("LLMSANDBOX_API_KEY", ready["key"])
        with SandboxSession() as session:
            assert session.run("print(6 * 7)").stdout == "42\n"
            assert session.execute_command("pwd").stdout == "/sandbox\n"
        with ArtifactSandboxSession() as artifacts:
            assert artifacts.run("print(1)").stdout == "1\n"
        with InteractiveSandboxSession() as interactive:
            interactive.run("x = 41")
            assert interactive.run("print(x + 1)").stdout == "42\n"
        server.stdin.close()
