"""What stands in a prompt outside its quotes, and in each of them."""

from __future__ import annotations


def split(user: str, nonce: str) -> tuple[list[str], list[list[str]]]:
    """Return the lines outside the quotes of a call and those of each quote.

    None of them forges or leaves a fence.
    """
    lines = user.split("\n")
    assert "\n".join(lines).splitlines() == lines
    outside: list[str] = []
    quotes: list[list[str]] = []
    inside = False
    for line in lines:
        if line == f"QUOTE>>> {nonce}":
            inside = False
        elif line.startswith(f"<<<QUOTE {nonce} "):
            inside = True
            quotes.append([])
            outside.append(line)
        elif inside:
            assert nonce not in line.lower() and not set("<>{}[]`") & set(line)
            assert line.isprintable()
            quotes[-1].append(line)
        else:
            assert not line.startswith(("<<<QUOTE", "QUOTE>>>"))
            outside.append(line)
    assert not inside
    return outside, quotes
