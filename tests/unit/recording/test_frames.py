"""The file format survives a cut at any byte, and refuses what it cannot read."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.recording.frames import MAGIC, FrameDecoder, FrameEncoder, UnreadableRecording


def file_of(header: bytes, contents: list[bytes]) -> tuple[bytes, list[int]]:
    """A file, and the length of the file after the header and after each frame."""
    encoder = FrameEncoder()
    data = encoder.header(header)
    ends = [len(data)]
    for content in contents:
        data += encoder.frame(content)
        ends.append(len(data))
    return data, ends


@given(header=st.binary(), contents=st.lists(st.binary(max_size=50), max_size=5))
def test_a_file_cut_at_any_byte_is_read_up_to_the_last_complete_frame(
    header: bytes, contents: list[bytes]
) -> None:
    data, ends = file_of(header, contents)
    for length in range(ends[0], len(data) + 1):
        decoder = FrameDecoder(io.BytesIO(data[:length]))
        assert decoder.header() == header
        num_complete = sum(end <= length for end in ends[1:])
        assert list(decoder.frames()) == contents[:num_complete]
        assert decoder.num_cut == length - ends[num_complete]


@given(
    contents=st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=3), data=st.data()
)
def test_a_changed_byte_is_never_read_as_content(
    contents: list[bytes], data: st.DataObject
) -> None:
    file, ends = file_of(b"header", contents)
    place = data.draw(st.integers(ends[0], len(file) - 1))
    damaged = (
        file[:place] + bytes([file[place] ^ data.draw(st.integers(1, 255))]) + file[place + 1 :]
    )
    decoder = FrameDecoder(io.BytesIO(damaged))
    decoder.header()
    read: list[bytes] = []
    with suppress(UnreadableRecording):
        read.extend(decoder.frames())
    assert read == contents[: len(read)]
    assert len(read) < len(contents)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "not a recording", id="empty"),
        pytest.param(b"apiVersion: v1\nkind: List\n", "not a recording", id="foreign"),
        pytest.param(
            b"stowage recording 2\n", r"version 2 of the format \(expected version 1\)", id="newer"
        ),
        pytest.param(MAGIC[:-4], "ends before the first call", id="cut in the magic line"),
        pytest.param(MAGIC, "ends before the first call", id="no header"),
        pytest.param(
            MAGIC + b"\x02" + bytes(60), "the header is damaged: its checksum", id="zeroed header"
        ),
        pytest.param(
            FrameEncoder().header(b"header")[:-1], "ends before the first call", id="cut header"
        ),
    ],
)
def test_a_file_without_a_header_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableRecording, match=message):
        FrameDecoder(io.BytesIO(data)).header()


def test_a_frame_that_expands_without_bound_is_damaged() -> None:
    data, _ = file_of(b"header", [b"0" * 10_000])
    decoder = FrameDecoder(io.BytesIO(data), max_frame_bytes=1_000)
    decoder.header()
    with pytest.raises(UnreadableRecording, match=r"frame 1 .* expands to more than 1000 bytes"):
        list(decoder.frames())


def test_a_frame_of_the_largest_size_is_read() -> None:
    data, _ = file_of(b"header", [b"0" * 1_000, b"1" * 1_000])
    decoder = FrameDecoder(io.BytesIO(data), max_frame_bytes=1_000)
    decoder.header()
    assert list(decoder.frames()) == [b"0" * 1_000, b"1" * 1_000]
