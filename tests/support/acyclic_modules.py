"""An import-linter contract: no import cycle between modules, including TYPE_CHECKING imports."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class AcyclicModules(Contract):
    """Fails on an import cycle between modules of the root packages, and names its modules.

    import-linter's own ``acyclic_siblings`` looks at packages; this contract looks at modules.
    """

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Search for one cycle."""
        cycle = find_cycle(graph)
        return ContractCheck(kept=cycle is None, metadata={"cycle": cycle})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import of the cycle."""
        for importer, imported in pairwise(check.metadata["cycle"]):
            output.print_error(f"{importer} imports {imported}")


def find_cycle(graph: ImportGraph) -> list[str] | None:
    """One import cycle, each module followed by one that it imports; None if there is none."""
    imports = {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
        if not graph.is_module_squashed(module)
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as found:
        # graphlib lists each module before the one that imports it.
        return list(reversed(found.args[1]))
    return None
