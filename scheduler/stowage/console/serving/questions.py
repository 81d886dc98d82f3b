"""Answers the questions of the page: light ones at once, heavy ones in a child process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from importlib import metadata

import msgspec

from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.workload_pods import InvalidManifest
from stowage.api.config.loading import InvalidConfiguration
from stowage.api.decisions import DecisionQuery
from stowage.console.answers.answer import Answer, InvalidQuestion
from stowage.console.answers.cluster_map import cluster_map
from stowage.console.answers.manifests import check_manifests
from stowage.console.answers.node_answer import node_answer
from stowage.console.answers.pod_answer import pod_answer, recorded_answer, verdict_map
from stowage.console.answers.pod_lists import PendingQuery, find_pods, pending_pods
from stowage.console.answers.what_if_answer import Changes, InvalidManifests, what_if_answer
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.source import ClusterSource, SourceName
from stowage.console.serving.answer_cache import AnswerCache
from stowage.console.serving.forked import ChildProcesses
from stowage.console.serving.responses import Encoded, encoded, refused
from stowage.framework.profile.points import ExtensionPoint


class ScoreWeight(Answer, frozen=True):
    """A score plugin with its weight."""

    plugin: str
    weight: int


class ProfilePlugins(Answer, frozen=True):
    """The plugins of a profile, in their order."""

    scheduler_name: str
    filters: list[str]
    scores: list[ScoreWeight]


class About(Answer, frozen=True):
    """What this console shows.

    Attributes:
        decisions: Where decisions come from; see `DecisionHistory`.
        timeline: Whether answers may be asked for other times.
    """

    stowage: str
    source: SourceName
    live: bool
    timeline: bool
    decisions: str
    profiles: list[ProfilePlugins]
    notes: list[str]
    version: int


def refusal_of(error: Exception) -> bytes | None:
    """The refusal for an exception, encoded; None if it is a failure of the console."""
    match error:
        case NotInCluster():
            found = refused(HTTPStatus.NOT_FOUND, str(error))
        case InvalidManifests():
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            found = refused(status, str(error), "manifests", error.errors)
        case InvalidManifest():
            found = refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), "manifests")
        case InvalidConfiguration():
            text = "; ".join(str(each).removeprefix("--") for each in error.errors)
            found = refused(HTTPStatus.UNPROCESSABLE_ENTITY, text, "weights")
        case InvalidQuestion():
            found = refused(HTTPStatus.BAD_REQUEST, str(error), error.field)
        case _:
            return None
    return msgspec.msgpack.encode(found)


class Questions:
    """Answers questions about a cluster.

    Args:
        source: The cluster.
        children: Runs what takes long.
        announced: Returns the version that pages know of: no answer is of an earlier one.
        monotonic: Returns seconds.
    """

    def __init__(
        self,
        source: ClusterSource,
        children: ChildProcesses,
        announced: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._announced = announced
        self._children = children
        self._cache = AnswerCache(monotonic)

    async def about(self) -> Encoded:
        """What this console shows."""
        source, moment = self.source, await self.source.at(None)
        return encoded(
            About(
                metadata.version("stowage"),
                source.name,
                source.is_live,
                source.timeline is not None,
                moment.history.source,
                _profiles(source),
                list(source.notes),
                source.version,
            )
        )

    async def cluster(self, at: float | None, group: str) -> Encoded:
        """The map."""
        return await self._at_once(("cluster", at, group), at, lambda it: cluster_map(it, group))

    async def verdicts(self, at: float | None, pod: str) -> Encoded:
        """The verdicts of all nodes about a pod."""
        return await self._in_child(("verdicts", at, pod), at, lambda it: verdict_map(it, pod))

    async def node(self, at: float | None, name: str) -> Encoded:
        """A node."""
        return await self._in_child(("node", at, name), at, lambda it: node_answer(it, name))

    async def pods(self, at: float | None, text: str, limit: int) -> Encoded:
        """A search of pods."""
        question = ("pods", at, text, limit)
        return await self._at_once(question, at, lambda it: find_pods(it, text, limit))

    async def pending(self, at: float | None, query: PendingQuery) -> Encoded:
        """The pending pods."""
        question = ("pending", at, query)
        return await self._in_child(
            question, at, lambda it: pending_pods(it, query, time.monotonic)
        )

    async def pod(self, at: float | None, key: str) -> Encoded:
        """Why a pod is where it is, or why it is pending."""
        return await self._in_child(("pod", at, key), at, lambda it: pod_answer(it, key))

    async def decisions(self, at: float | None, query: DecisionQuery, before: str) -> Encoded:
        """The feed."""
        moment = await self.source.at(at)
        return encoded(moment.history.answer(query, before, moment.version))

    async def statistics(self, at: float | None) -> Encoded:
        """The numbers about decisions."""
        moment = await self.source.at(at)
        return encoded(moment.history.stats(moment.unix_s, moment.version))

    async def decision(self, at: float | None, decision_id: str) -> Encoded:
        """A decision of the feed."""
        found = (await self.source.at(at)).history.find(decision_id)
        if found is None:
            raise NotInCluster(f"the decision {decision_id} is not known, or was dropped")
        question = ("decision", at, decision_id)
        return await self._in_child(question, at, lambda it: recorded_answer(it, *found))

    async def what_if(self, at: float | None, changes: Changes) -> Encoded:
        """What changes would do."""
        flags = self.source.name.flags
        moment = await self.source.at(at)
        return await self._child(lambda: what_if_answer(moment, changes, flags))

    async def manifests(self, text: str) -> Encoded:
        """The objects and the errors of manifests."""
        moment = await self.source.at(None)
        return await self._child(lambda: check_manifests(text, moment.loaded.objects))

    async def _at_once(
        self, question: Hashable, at: float | None, answer: Callable[[Moment], Answer]
    ) -> Encoded:
        async def answered(moment: Moment) -> Encoded:
            return encoded(answer(moment))

        return await self._shared(question, at, answered)

    async def _in_child(
        self, question: Hashable, at: float | None, answer: Callable[[Moment], Answer]
    ) -> Encoded:
        return await self._shared(question, at, lambda moment: self._child(lambda: answer(moment)))

    async def _shared(
        self, question: Hashable, at: float | None, answer: Callable[[Moment], Awaitable[Encoded]]
    ) -> Encoded:
        least = self._announced()
        await self._cache.older_made(question, least)
        moment = await self.source.at(at)
        return await self._cache.get(question, moment.version, least, lambda: answer(moment))

    async def _child(self, answer: Callable[[], Answer]) -> Encoded:
        def compute() -> bytes:
            return msgspec.msgpack.encode(encoded(answer()))

        told = await self._children.answer(compute, refusal_of)
        return msgspec.msgpack.decode(told, type=Encoded)


def _profiles(source: ClusterSource) -> list[ProfilePlugins]:
    found = []
    for framework in source.frameworks:
        profile = framework.profile
        scores = [
            ScoreWeight(each.name, profile.weights.get(each.name, 1))
            for each in profile.plugins[ExtensionPoint.SCORE]
        ]
        filters = [each.name for each in profile.plugins[ExtensionPoint.FILTER]]
        found.append(ProfilePlugins(framework.scheduler_name, filters, scores))
    return found
