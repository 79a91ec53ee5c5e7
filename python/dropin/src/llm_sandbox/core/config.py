"""The configuration of a session."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, field_validator, model_validator

from llm_sandbox.const import EncodingErrorsType, SupportedLanguage
from llm_sandbox.language_handlers.factory import LanguageHandlerFactory
from llm_sandbox.security.policy import SecurityPolicy


class SessionConfig(BaseModel):
    """What a session was asked for."""

    lang: SupportedLanguage | str = Field(
        default=SupportedLanguage.PYTHON, description="The language of the code: a supported one, or one with a registered handler."
    )
    image: str | None = Field(default=None, description="The container image. Without one, the language's default.")
    dockerfile: str | None = Field(default=None, description="A Dockerfile to build the image from, instead of `image`.")
    container_id: str | None = Field(
        default=None, description="The ID of a container, pod or sandbox that exists. The session uses it and does not remove it."
    )
    verbose: bool = Field(default=False, description="Log commands and their output.")
    workdir: str = Field(default="/sandbox", description="The directory in the sandbox where code runs.")
    default_timeout: float | None = Field(default=60.0, description="Seconds that an operation may take unless it says otherwise.")
    execution_timeout: float | None = Field(default=None, description="Seconds that a run may take unless it says otherwise.")
    session_timeout: float | None = Field(default=None, description="Seconds after which the session ends.")
    security_policy: SecurityPolicy | None = Field(default=None, description="What `is_safe` looks for in code.")
    runtime_configs: dict[str, Any] = Field(default={}, description="Settings of the container, such as `mem_limit` or `user`.")
    skip_environment_setup: bool = Field(
        default=False, description="Use the image as it is: set up no environment, and install no libraries."
    )
    encoding_errors: EncodingErrorsType = Field(
        default="strict", description="How output that is not UTF-8 is decoded: the `errors` of `bytes.decode`."
    )

    @field_validator("lang", mode="before")
    @classmethod
    def _find_language(cls, value: object) -> object:
        if not isinstance(value, str) or isinstance(value, SupportedLanguage):
            return value
        if value.lower() in (str(language) for language in SupportedLanguage):
            return SupportedLanguage(value)
        if value.lower() in LanguageHandlerFactory.get_supported_languages():
            return value.lower()
        raise ValueError(f"{value!r} is not a valid {SupportedLanguage.__name__}, and no handler is registered for it")

    @model_validator(mode="after")
    def _check_image(self) -> SessionConfig:
        if self.dockerfile is not None and self.image is not None:
            raise ValueError("Only one of 'image' or 'dockerfile' can be provided, not both")
        if self.dockerfile is not None and self.container_id is not None:
            raise ValueError("Cannot use 'dockerfile' with existing 'container_id'")
        return self

    def get_execution_timeout(self) -> float | None:
        """Return how many seconds a run may take that names no timeout, or None if any."""
        return self.execution_timeout or self.default_timeout

    def is_using_existing_container(self) -> bool:
        """Return whether the session uses a container that exists."""
        return self.container_id is not None
