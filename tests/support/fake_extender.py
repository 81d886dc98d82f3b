"""A fake extender without HTTP: answers are scripted by verb, and requests are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from stowage.api.config.loading import Extender
from stowage.api.instructions import PodReference
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from stowage.operator.extenders.failure_log import FailureLog
from stowage.operator.extenders.objects import ExtenderObjects


class FakeExtender(ExtenderClient):
    """Answers each verb with its entry in `answers`: builtins, bytes or an error to raise."""

    def __init__(self, config: Extender, **answers: Any) -> None:
        self.config = config
        self.questions: list[tuple[str, Any]] = []
        self.failure_log = FailureLog()
        self.num_failures = 0
        self._answers = answers

    @property
    def name(self) -> str:
        return self.config.url_prefix

    def asked(self, verb: str) -> list[Any]:
        return [question for asked_verb, question in self.questions if asked_verb == verb]

    def failure(self, text: str, *, may_have_acted: bool = True) -> ExtenderError:
        self.num_failures += 1
        return ExtenderError(text, may_have_acted=may_have_acted)

    async def send(
        self, verb: str, body: bytes, may_send: Callable[[], bool] | None = None
    ) -> bytes:
        if may_send is not None and not may_send():
            raise self.failure("it may not be sent any more")
        self.questions.append((verb, msgspec.json.decode(body)))
        answer = self._answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


class FakeObjects(ExtenderObjects):
    """Pods and nodes that have only a name; those in `gone` are not found."""

    def __init__(self, *gone: str) -> None:
        self._gone = gone

    async def pod(self, reference: PodReference) -> bytes:
        if reference.name in self._gone:
            raise ExtenderError(f"pod {reference.key} is gone", may_have_acted=False)
        return msgspec.json.encode({"metadata": {"name": reference.name}})

    def existing_nodes(self, names: Iterable[str]) -> dict[str, bytes]:
        return {
            name: msgspec.json.encode({"metadata": {"name": name}})
            for name in names
            if name not in self._gone
        }
