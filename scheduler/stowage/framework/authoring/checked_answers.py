"""Checks the answers of out-of-tree plugins.

Whatever a plugin's method raises or returns, the runtime gets either an answer of the expected type
or an exception, which it turns into an Error of one pod that names the plugin. In-tree plugins are
not wrapped: mypy checks their types.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from stowage.api.cluster_events import ClusterEvent, QueueingHint
from stowage.api.instructions import BindPod
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim
from stowage.api.status import Code, Status
from stowage.api.values.reserved_annotations import RESERVED_PREFIX
from stowage.framework.extension_points import (
    EventRegistration,
    PreFilterResult,
    QueueingHintFn,
    ReservePlan,
)
from stowage.framework.profile.registry import PluginUnusable
from stowage.framework.verdict import FilterVerdict, Rejection

#: (answer, the call's arguments) -> None; raises `TypeError` or `ValueError` on a wrong answer.
_Check: TypeAlias = Callable[[Any, Sequence[Any]], None]

#: What the API server accepts as the key of an annotation.
_RESERVED_KEY = re.compile(
    re.escape(RESERVED_PREFIX) + r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)


class InterruptionRaisedError(RuntimeError):
    """A plugin raised `SystemExit` or the like; it ends the cycle of one pod, not the process."""


def checked(member: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """`method` with its answers checked; `member` is its name in `extension_points`."""
    if member == "pre_bind":
        return _checked_coroutine(method)
    if member == "sort_key":
        return _checked_sort_key(method)
    check = _CHECKS.get(member)
    if check is None:
        return method

    @wraps(method)
    def ask(*args: Any) -> Any:
        answer = _ask(method, args)
        check(answer, args)
        return answer

    return ask


def unsortable(sort_key: Callable[..., Any], *args: Any) -> Exception | None:
    """The failure of a plugin's ``sort_key`` for a pod; None if the key is valid."""
    try:
        _numbers(_ask(sort_key, args))
    except Exception as problem:
        return problem
    return None


def checked_registrations(method: Callable[[], Any]) -> tuple[EventRegistration, ...]:
    """The registrations of ``events_to_register``, with hints whose answers are checked.

    Raises:
        PluginUnusable: The method raised, or returned something other than registrations.
    """
    try:
        registrations = tuple(_ask(method, ()))
        for each in registrations:
            _of_type(each, EventRegistration)
            _of_type(each.event, ClusterEvent)
    except Exception as problem:
        text = f"its events_to_register failed with {type(problem).__name__}: {problem}"
        raise PluginUnusable(text) from problem
    return tuple(
        each if each.hint is None else EventRegistration(each.event, _checked_hint(each.hint))
        for each in registrations
    )


def _ask(method: Callable[..., Any], args: Sequence[Any]) -> Any:
    try:
        answer = method(*args)
    except Exception:
        raise
    except BaseException as interruption:
        raise _interrupted(interruption) from interruption
    _refuse_coroutine(answer)
    return answer


def _refuse_coroutine(answer: Any) -> None:
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("answered a coroutine, expected a value")


def _interrupted(interruption: BaseException) -> InterruptionRaisedError:
    return InterruptionRaisedError(f"it raised {type(interruption).__name__}({interruption})")


def _checked_coroutine(
    method: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Coroutine[Any, Any, Status]]:
    @wraps(method)
    async def ask(*args: Any) -> Status:
        try:
            answer = await method(*args)
        except GeneratorExit as closing:
            if closing.__traceback__ is None or closing.__traceback__.tb_next is None:
                raise  # the event loop closes this coroutine; the plugin has not raised it
            raise _interrupted(closing) from closing
        except (KeyboardInterrupt, SystemExit) as interruption:
            raise _interrupted(interruption) from interruption
        _refuse_coroutine(answer)
        _status(answer, args)
        return answer  # type: ignore[no-any-return]  # `_status` has just looked

    return ask


def _checked_sort_key(method: Callable[..., Any]) -> Callable[..., tuple[float, ...]]:
    """Keys that always compare; a pod without a valid key is queued last.

    The pod's scheduling cycle asks `unsortable` first, and fails with the plugin's error.
    """

    @wraps(method)
    def ask(*args: Any) -> tuple[float, ...]:
        try:
            return (0, *_numbers(_ask(method, args)))
        except Exception:
            return (1,)

    return ask


def _numbers(sort_key: Any) -> tuple[float, ...]:
    """A sort key, which is a number or a tuple of numbers, as a tuple of Python's numbers."""
    return tuple(map(_number, sort_key if isinstance(sort_key, tuple) else (sort_key,)))


def _number(part: Any) -> float:
    if isinstance(part, int | np.integer):
        return int(part)
    if isinstance(part, float | np.floating) and not math.isnan(part):
        return float(part)
    raise TypeError(f"answered {_shown(part)} in a sort key, expected a number or a tuple of them")


def _checked_hint(hint: QueueingHintFn) -> QueueingHintFn:
    def ask(*args: Any) -> QueueingHint:
        answer = _ask(hint, args)
        _of_type(answer, QueueingHint)
        return answer  # type: ignore[no-any-return]  # `_of_type` has just looked

    return ask


def _of_type(answer: Any, *expected: type) -> None:
    if not isinstance(answer, expected):
        names = " or ".join(kind.__name__ for kind in expected)
        raise TypeError(f"answered {_shown(answer)}, expected {names}")


def _shown(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _status(answer: Any, _args: Sequence[Any]) -> None:
    _of_type(answer, Status)
    if not (
        isinstance(answer.code, Code)
        and isinstance(answer.reasons, tuple)
        and all(isinstance(reason, str) for reason in answer.reasons)
        and isinstance(answer.plugin, str)
    ):
        raise TypeError(f"answered {_shown(answer)}, expected a Code and a tuple of texts in it")


def _pre_filter_result(answer: Any, args: Sequence[Any]) -> None:
    _of_type(answer, PreFilterResult)
    _status(answer.status, args)
    if answer.node_names is not None:
        _of_type(answer.node_names, frozenset, set)
        for name in answer.node_names:
            _of_type(name, str)


def _verdict(answer: Any, args: Sequence[Any]) -> None:
    _of_type(answer, FilterVerdict)
    _of_type(answer.rejections, tuple)
    for rejection in answer.rejections:
        _of_type(rejection, Rejection)
        _of_type(rejection.reason, str)
        _array(rejection.mask, np.bool_, f"mask of {rejection.reason!r}", args)
        if not isinstance(rejection.unresolvable, bool | np.bool_):
            _array(rejection.unresolvable, np.bool_, f"unresolvable of {rejection.reason!r}", args)


def _reservation(answer: Any, args: Sequence[Any]) -> None:
    if answer is None:
        return
    if not isinstance(answer, ReservePlan):
        _status(answer, args)
        return
    for volume in answer.volumes:
        _of_type(volume, PersistentVolume)
    for claim in answer.claims:
        _of_type(claim, PersistentVolumeClaim)
    _of_type(answer.annotations, dict)
    for key, value in answer.annotations.items():
        _of_type(key, str)
        _of_type(value, str)
        if not _RESERVED_KEY.fullmatch(key):
            expected = f"{RESERVED_PREFIX} and a name of at most 63 letters, digits, - _ ."
            raise ValueError(f"annotation {_shown(key)}, expected {expected}")


def _scores(answer: Any, args: Sequence[Any]) -> None:
    _array(answer, np.int64, "scores", args)


def _array(answer: Any, dtype: type[np.generic], what: str, args: Sequence[Any]) -> None:
    """An array with one element a node; the nodes are the third argument."""
    num_nodes = len(args[2])
    is_array = isinstance(answer, np.ndarray)
    if is_array and answer.dtype == dtype and answer.shape == (num_nodes,):
        return
    expected = f"{np.dtype(dtype).name}({num_nodes},)"
    if is_array:
        raise ValueError(f"{what}: {answer.dtype}{answer.shape}, expected {expected}")
    raise TypeError(f"{what}: {_shown(answer)}, expected {expected}")


def _pair(answer: Any) -> None:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"answered {_shown(answer)}, expected two values")


def _post_filter(answer: Any, args: Sequence[Any]) -> None:
    _pair(answer)
    _status(answer[0], args)
    _of_type(answer[1], str, type(None))


def _permit(answer: Any, args: Sequence[Any]) -> None:
    _pair(answer)
    _status(answer[0], args)
    seconds = answer[1]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ValueError(f"answered {_shown(seconds)}, expected seconds, 0 or more")


def _bind(answer: Any, args: Sequence[Any]) -> None:
    if answer is None:
        return
    _of_type(answer, BindPod)
    if answer.pod != args[1].reference or answer.node_name != args[2]:
        raise ValueError(f"answered {_shown(answer)}, expected {args[1].key} on {args[2]}")


def _nothing(answer: Any, _args: Sequence[Any]) -> None:
    """Accept any value: the runtime ignores the answers of these methods."""


_CHECKS: Mapping[str, _Check] = {
    "pre_enqueue": _status,
    "pre_filter": _pre_filter_result,
    "filter": _verdict,
    "post_filter": _post_filter,
    "pre_score": _status,
    "score": _scores,
    "normalize_score": _scores,
    "reserve": _reservation,
    "unreserve": _nothing,
    "permit": _permit,
    "pre_bind_pre_flight": _status,
    "bind": _bind,
    "post_bind": _nothing,
}
