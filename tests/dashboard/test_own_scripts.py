"""Our own scripts, sheets and templates: text stays text, no code from strings, no other host."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import cases
from torra.config import ROOT

STATIC = ROOT / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
SHEETS = sorted(STATIC.glob("*.css"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))

FROM_STRINGS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|srcdoc|DOMParser|createContextualFragment"
    r"|document\s*\.\s*write|\beval\b|\bnew\s+Function\b|\bFunction\s*\(|\bimport\s*\("
    r"|set(?:Timeout|Interval)\s*\(\s*['\"`]|javascript:"
)
"""What turns text into elements or into code."""

HANDLER = re.compile(r"""setAttribute\(\s*["'`]on|\.on[a-z]+\s*=\s*["'`]""")
ELSEWHERE = re.compile(r"""["'`(](?:https?:)?//(?!\s)""")
"""An address with a host in it: pages ask nobody but their own desk."""

UNSAFE_TEMPLATE = re.compile(
    r"\|\s*(?:safe|tojson|urlize|xmlattr)\b|Markup|\{%-?\s*(?:autoescape|endautoescape)"
    r"""|=\{\{|=\{%|\sstyle\s*=|\son[a-z]+\s*=|javascript:|<script>|<style|<iframe|<object|<embed"""
)
NAMES = {path.name for path in STATIC.iterdir() if path.is_file()}


def without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*//.*$", "", text)


@cases("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_writes_text_only_and_asks_nobody_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not FROM_STRINGS.search(text)
    assert not HANDLER.search(text)
    assert not ELSEWHERE.search(text)


@cases("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_what_it_is_for_and_loads_only_our_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("// ")
    assert len(text.splitlines()) < 500
    for source in re.findall(r"""\bfrom\s+["']([^"']+)["']""", without_comments(text)):
        assert re.fullmatch(r"\./[a-z_]+\.js", source), source
        assert source[2:] in NAMES


@cases("path", SHEETS, ids=lambda path: path.name)
def test_a_sheet_loads_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|expression\(|-moz-binding", text)
    assert text.startswith("/* ")
    assert path.stat().st_size < 24_000


@cases("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_escapes_everything_and_has_no_inline_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = UNSAFE_TEMPLATE.search(text)
    assert not found, text[max(0, found.start() - 60) : found.end() + 60]
    for tag in re.findall(r"<(?:script|link)\b[^>]*>", text):
        source = re.search(r"filename='([^']+)'|filename=([a-z_.\[\]\"'-]+)", tag)
        assert source, tag
        assert "url_for('torra_agents.static'" in tag
        if source[1]:
            assert source[1] in NAMES, tag


@cases(
    ("pattern", "text"),
    [
        (FROM_STRINGS, "place.innerHTML = text"),
        (FROM_STRINGS, "document . write(text)"),
        (FROM_STRINGS, "setTimeout('run()', 5)"),
        (FROM_STRINGS, "await import(name)"),
        (FROM_STRINGS, "const f = new Function(text)"),
        (HANDLER, "button.onclick = 'run()';"),
        (HANDLER, 'button.setAttribute("onclick", text)'),
        (ELSEWHERE, "fetch('https://evil.test')"),
        (ELSEWHERE, 'new EventSource("//evil.test/x")'),
        (UNSAFE_TEMPLATE, "<p>{{ text|safe }}</p>"),
        (UNSAFE_TEMPLATE, "<p title={{ text }}>"),
        (UNSAFE_TEMPLATE, '<p style="color: red">'),
        (UNSAFE_TEMPLATE, '<button onclick="run()">'),
        (UNSAFE_TEMPLATE, "{% autoescape false %}"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern, text: str) -> None:
    assert pattern.search(text)


def test_pages_put_choices_on_before_anything_is_painted() -> None:
    base = (ROOT / "templates" / "torra_agents" / "base.html").read_text(encoding="utf-8")
    head = base[: base.index("</head>")]
    assert head.index("early.js") < head.index("stylesheet")
    assert re.search(r'<script src="[^>]*early\.js', head)  # classic, so that it blocks
    early = (STATIC / "early.js").read_text(encoding="utf-8")
    kept = (STATIC / "prefs.js").read_text(encoding="utf-8")
    key = re.search(r'KEPT = "([^"]+)"', early)[1]
    assert f'KEPT = "{key}"' in kept
    choices = set(re.findall(r"^  (\w+): \[", kept, re.MULTILINE))
    assert choices == {"theme", "palette", "zone", "confirm", "keys"}
    values = re.findall(r'\["([a-z-]+)", "', kept)
    plain = re.compile(re.search(r"PLAIN = /(.*?)/;", early)[1])
    assert all(plain.fullmatch(word) for word in (*choices, *values))


def test_help_lists_the_keys_that_there_are() -> None:
    keys = (STATIC / "keys.js").read_text(encoding="utf-8")
    table = keys[keys.index("const KEYS = [") : keys.index("\n];")]
    known = re.findall(r'^  \["([^"]+)", ', table, re.MULTILINE)
    assert set(known) == set("/fjk.?")
    page = (ROOT / "templates" / "torra_agents" / "help.html").read_text(encoding="utf-8")
    listed = page[page.index('id="keys"') : page.index('id="display"')]
    assert set(re.findall(r'\("([^"]{1,5})", "', listed)) == set(known)
    for choice in ("theme", "palette", "time-zone"):
        assert f'id="{choice}"' in page
