from hypothesis import given
from hypothesis import strategies as st

from claw.runtime.clip import LIMIT, clip
from claw.testing import MemoryBlobs

pieces = st.sampled_from(["a line\n", "x" * 9000, "\n", "世界 ", "\r\n"])


@given(st.lists(pieces, max_size=60).map("".join))
def test_nothing_is_lost_and_the_limit_holds(text: str) -> None:
    blobs = MemoryBlobs()
    shown, digest = clip(text, blobs)
    if len(text) <= LIMIT:
        assert (shown, digest) == (text, "")
        return
    assert len(shown) <= LIMIT + 200
    assert blobs.get(digest).decode() == text
    head, _, rest = shown.partition("\n[... ")
    tail = rest.partition("...]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    omitted = len(text.encode()) - len(head.encode()) - len(tail.encode())
    assert f"{omitted} bytes omitted" in shown
