"""Extenders: the requests to them, and their answers.

Purpose. A decision that needs extenders ends with a question. `consulting` turns the question into
an instruction for the shell and the shell's answer into input of the next decision.

Invariants. A pod that waits for extenders is in flight: events that arrive meanwhile count for it.

Callers. `schedule_one`, and the engine for the answers.
"""
