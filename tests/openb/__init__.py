"""The openb experiment against a plain twin, and against the published values.

``python -m tests.openb`` runs what was published: five policies, three traces, ten seeds. It needs
the data, in the folder that ``STOWAGE_OPENB`` names; see docs/how-to/replay-gpu-pods.md.
"""
