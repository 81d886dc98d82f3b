"""Storage: claims, volumes, classes and CSI objects, and their use on each node.

Purpose. Volume plugins look up claims and volumes by key, class and volume, and ask for all nodes
how many volumes are attached and which disks are in use.

Invariants. The look-ups and the use per node equal a recount from the objects, in whatever order
pods, claims, volumes and attachments arrive. An assumption about a claim or volume holds until the
API server shows a newer version, or the pod that assumed it gives it up.
"""
