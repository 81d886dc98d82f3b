"""Imports libraries without the parts of them that the scheduler never uses.

Their imports would be a large part of a start. What is left out can still be imported later, e.g.
by a plugin.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from stowage.cli.late_dataclasses import late_dataclasses

_PACKAGES = (
    # These import every part of a synchronous and of an asynchronous client.
    "kubernetes",
    "kubernetes.aio",
    "kubernetes.aio.client",
    "kubernetes.aio.utils",
    # It imports HTTP servers.
    "prometheus_client",
)
"""Packages that import much more than the scheduler uses; their submodules do not."""
_ARRAY_TYPES = "numpy._typing", "numpy.typing"
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_CONFIGURATION = "kubernetes.aio.client.configuration"


@contextmanager
def lean_libraries() -> Iterator[None]:
    """Import structlog, Kopf, numpy and the Kubernetes client without most of their dependencies.

    The modules that import these libraries must be imported in the block: after it, an import of
    the Kubernetes client imports the whole client, and one of numpy's types all of them.
    """
    # structlog uses Rich for tracebacks in colours; our log formats have plain ones.
    with _as_if_not_installed("rich"):
        import_module("structlog")
    _import_aiohttp()
    # Kopf can set the owners of the client's models; the scheduler has no such models.
    with _as_if_not_installed("kubernetes"), late_dataclasses():
        import_module("kopf")
    with lean_client(), _lean_numpy():
        yield


@contextmanager
def lean_client() -> Iterator[None]:
    """Import the Kubernetes client without most of its dependencies, as `lean_libraries` does."""
    _import_aiohttp()
    with empty_packages(*_PACKAGES) as packages:
        client: Any = packages["kubernetes.aio.client"]
        client.ApiClient = _make_api_client
        # A version that has it elsewhere runs the package's own code, see `empty_packages`.
        with suppress(ImportError, AttributeError):
            client.Configuration = import_module(_CONFIGURATION).Configuration
        yield


def _import_aiohttp() -> None:
    # It loads the system's certificates twice; an API server has a CA of its own.
    with _late_certificates():
        import_module("aiohttp")


@contextmanager
def _lean_numpy() -> Iterator[None]:
    """Import numpy without docstrings, threads and, in this block, types."""
    # The docstrings of numpy's functions in C.
    unused = "numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"
    with _untyped_arrays():
        with empty_modules(*unused), without_blas_threads():
            import_module("numpy")
        yield


@contextmanager
def _untyped_arrays() -> Iterator[None]:
    """Imports of the type of arrays give that of lists in this block: only annotations have it."""
    with empty_modules(*_ARRAY_TYPES):
        for name in _ARRAY_TYPES:
            vars(sys.modules[name]).setdefault("NDArray", list)
        yield


@contextmanager
def without_blas_threads() -> Iterator[None]:
    """OpenBLAS starts no threads in this block; no plugin multiplies matrices of floats."""
    # Its threads wait busily for work, which takes CPU time from the rest of the start.
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]


def _make_api_client(*arguments: Any, **named: Any) -> Any:
    """Stands for the class ApiClient, which `kubernetes.aio.config` imports; it needs Pydantic."""
    return import_module("kubernetes.aio.client.api_client").ApiClient(*arguments, **named)


class _LateCertificates(ssl.SSLContext):
    """A TLS context that loads the system's certificates when it is used first."""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        self._load()
        return self.wrap_bio(*arguments, **named)

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        self._load()
        return self.wrap_socket(*arguments, **named)

    def _load(self) -> None:
        self.__class__ = ssl.SSLContext  # type: ignore[assignment] # which has the same attributes
        self.set_default_verify_paths()


@contextmanager
def _late_certificates() -> Iterator[None]:
    """TLS contexts that are made in this block load the system's certificates late."""

    def load_late(context: ssl.SSLContext, *_purpose: ssl.Purpose) -> None:
        context.__class__ = _LateCertificates

    context_class: Any = ssl.SSLContext
    load_now = context_class.load_default_certs
    context_class.load_default_certs = context_class.set_default_verify_paths = load_late
    try:
        yield
    finally:
        context_class.load_default_certs = load_now
        del context_class.set_default_verify_paths  # inherited


@contextmanager
def _as_if_not_installed(package: str) -> Iterator[None]:
    """Imports of the package fail in this block, unless it has been imported before."""
    if package in sys.modules:
        yield
        return
    # Documented meaning of None: the import raises ModuleNotFoundError.
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


@contextmanager
def empty_modules(*modules: str) -> Iterator[None]:
    """Imports of these modules give empty ones in this block, unless imported before.

    A module's own code runs after all if something of it is asked for.
    """
    added = {name: _empty_module(name) for name in modules if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _empty_module(name: str) -> ModuleType:
    module = ModuleType(name)

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):  # An import asks for these.
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        del module.__dict__["__getattr__"]
        if sys.modules.get(name) is module:
            del sys.modules[name]
        vars(module).update(vars(import_module(name)))
        return getattr(module, attribute)

    module.__dict__["__getattr__"] = missing
    return module


@contextmanager
def empty_packages(*packages: str) -> Iterator[dict[str, ModuleType]]:
    """Import submodules of these packages in this block without running the packages' own code.

    It runs after all if an attribute is asked for that it would have set.

    Args:
        packages: Full names, a parent before its children. One that has been imported stays.

    Raises:
        ModuleNotFoundError: a package is not installed.
    """
    added = [name for name in packages if name not in sys.modules]
    for name in added:
        spec = find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = _empty_package(spec)
    try:
        yield {name: sys.modules[name] for name in packages}
    finally:
        for name in added:
            del sys.modules[name]


def _empty_package(spec: ModuleSpec) -> ModuleType:
    package = module_from_spec(spec)

    def missing(name: str) -> Any:
        # An import asks for a submodule in this way before it imports it.
        is_own = not name.startswith("__") and find_spec(f"{spec.name}.{name}") is None
        if not is_own or spec.loader is None:
            raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")
        del package.__dict__["__getattr__"]
        spec.loader.exec_module(package)
        return getattr(package, name)

    package.__dict__["__getattr__"] = missing
    return package
