"""The backend Kubernetes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import llmsandbox

from llm_sandbox import _connections
from llm_sandbox._engine import Engine
from llm_sandbox._session import EngineSession
from llm_sandbox.const import DefaultImage, EncodingErrorsType, SupportedLanguage
from llm_sandbox.exceptions import ContainerError, ValidationError
from llm_sandbox.security import SecurityPolicy

_REFERENCE_IMAGES = {value for name, value in vars(DefaultImage).items() if name.isupper()}


class SandboxKubernetesSession(EngineSession):
    """A session in a pod, of the cluster of `client`, or else of the current context of the kubeconfig.

    The package kubernetes is not needed. A `pod_manifest` is laid over the pod that a sandbox has by default. `container` is the
    pod's name.
    """

    def __init__(
        self,
        client: Any = None,
        image: str | None = None,
        lang: str = SupportedLanguage.PYTHON,
        verbose: bool = False,
        kube_namespace: str = "default",
        env_vars: Mapping[str, str] | None = None,
        pod_manifest: Mapping[str, Any] | None = None,
        workdir: str | None = "/sandbox",
        security_policy: SecurityPolicy | None = None,
        default_timeout: float | None = None,
        execution_timeout: float | None = None,
        session_timeout: float | None = None,
        container_id: str | None = None,
        skip_environment_setup: bool = False,
        encoding_errors: EncodingErrorsType = "strict",
        *,
        dockerfile: str | None = None,
        keep_template: bool = False,
        commit_container: bool = False,
        **kwargs: Any,
    ) -> None:
        if dockerfile is not None or commit_container:
            raise ValidationError("dockerfile and commit_container are not available on Kubernetes: push an image, and name it with image=")
        template = None if pod_manifest is None else pod_template(pod_manifest, workdir or "/sandbox")
        namespace = (template or {}).get("metadata", {}).pop("namespace", None) or kube_namespace
        self.client = client
        self.kube_namespace = self.namespace = str(namespace)
        self.pod_manifest = pod_manifest
        engine = Engine("kubernetes").with_flags("--namespace", self.namespace)
        if client is not None:
            engine = engine.with_flags("--kubeconfig", _connections.kubeconfig(client, self.namespace))
        if template is not None:
            engine = engine.with_flags("--pod-template", _connections.write_private("pod", template))
            image = None
        if image in _REFERENCE_IMAGES:
            image = None  # the default one, which has the same language
        if image is not None:
            engine = engine.with_flags("--image", image)
        super().__init__(
            engine=engine,
            image=image,
            lang=lang,
            verbose=verbose,
            workdir=workdir,
            env_vars=env_vars,
            security_policy=security_policy,
            default_timeout=default_timeout,
            execution_timeout=execution_timeout,
            session_timeout=session_timeout,
            container_id=container_id,
            skip_environment_setup=skip_environment_setup,
            encoding_errors=encoding_errors,
            **kwargs,
        )

    def _container_of(self, sandbox: llmsandbox.Sandbox) -> Any:
        """Return the pod's name, which is its host name. No code of the caller has run yet."""
        return sandbox.exec("cat /proc/sys/kernel/hostname").stdout.strip() or sandbox.id

    def _open_existing(self, container_id: str) -> None:
        place = [flag for name in ("--namespace", "--kubeconfig") if name in self._engine.flags for flag in (name, self._flag(name))]
        try:
            self._use_existing(container_id, container_id, *place, "--pod", container_id)
        except ContainerError as e:
            if "not found" in str(e):
                raise ContainerError(f"Pod {container_id} not found in namespace {self.namespace}") from e
            raise

    def _flag(self, name: str) -> str:
        return self._engine.flags[self._engine.flags.index(name) + 1]


def pod_template(manifest: Mapping[str, Any], workdir: str) -> dict[str, Any]:
    """Return a manifest without what a sandbox's pod has by itself. The argument stays as it is.

    The pod's name and the program of its container are the sandbox's own, as are writable volumes at the working directory and /tmp.
    """
    if not isinstance(manifest, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValidationError(f"pod_manifest is a {type(manifest).__name__}, and not a dict")
    template: dict[str, Any] = copy.deepcopy(dict(manifest))
    metadata: dict[str, Any] = template.get("metadata") or {}
    metadata.pop("name", None)
    spec: dict[str, Any] = template.get("spec") or {}
    template |= {"metadata": metadata, "spec": spec}
    volumes: list[dict[str, Any]] = spec.get("volumes") or []
    containers: list[dict[str, Any]] = spec.get("containers") or []
    empty = {volume.get("name") for volume in volumes if "emptyDir" in volume}
    for container in containers[:1]:
        container.pop("command", None)
        container.pop("args", None)
        mounts: Any = container.get("volumeMounts") or []
        listed: list[dict[str, Any]] = [mounts] if isinstance(mounts, dict) else mounts  # which users write
        container["volumeMounts"] = [
            mount
            for mount in listed
            if not (mount.get("name") in empty and str(mount.get("mountPath")).rstrip("/") in ("/tmp", workdir))
        ]
    used: set[Any] = set()
    for container in containers:
        mounted: list[dict[str, Any]] = container.get("volumeMounts") or []
        used.update(mount.get("name") for mount in mounted)
    if "volumes" in spec:
        volumes = spec["volumes"] = [volume for volume in volumes if volume.get("name") in used or "emptyDir" not in volume]
        for volume in volumes:
            if "emptyDir" in volume:
                volume["emptyDir"] = {"sizeLimit": "1Gi", **(volume["emptyDir"] or {})}
    return template
