"""The shapes: objects of a cluster, each kind of which one part of the scheduler may be slow with.

A shape is a function that prepares a cluster and then lets the measured loop handle what is slow.
"""
