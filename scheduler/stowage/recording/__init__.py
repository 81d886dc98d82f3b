"""Recordings: the calls of an engine in files, written while it runs and read to replay them.

Purpose. A recording holds the calls of ``Engine.handle`` and ``Engine.schedule`` since the start of
the process, with all events, ties and instructions. So another process on another machine can
repeat them and come to the same state (``stowage replay``).

Invariants.

- A recording is a row of segments, each a file. Nothing is dropped from the middle: the oldest
  segments are removed to keep the limits of the folder.
- All segments since the start repeat bit for bit. A later segment begins with a checkpoint: the
  objects that the calls before it had shown, not the engine's state; `engine.journal` says why.
- Files are only appended to. A crash leaves at most one incomplete frame, at the end of the last
  segment, and at most one file without a name, which has no call that is not elsewhere.
- Annotations are not recorded, except those that scheduling reads; see `calls`.
- An anonymous recording holds a hash in place of each name; see `anonymiser`.
- The scheduling path appends to a list; encoding, compression, the objects of checkpoints and
  writing are the work of a thread.

Modules. `recorder` is the thread that writes, `segment_writer` its segments, `segment_file` one of
them, `known_objects` what a checkpoint holds, and `limits` removes old files. `calls` encodes
calls, `frames` is the file format, `header` its first frame, and `names` are those of the files.
`reader` reads a recording, `segment` one file of it. `anonymiser` replaces names, and
`own_words` are those that it keeps.

Callers. The shell makes the recorder, for an engine or an observer of another scheduler, which
records events only; ``stowage simulate --record`` writes segments itself. The commands and the
console read.

Rejected: a frame for each call, compressed alone, which takes ten times the size.
"""
