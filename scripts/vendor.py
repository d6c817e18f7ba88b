"""Put the software of others that the pages load into static/vendor, with licences and digests.

For maintainers, after a version was changed in frontend/package.json: `npm install
--ignore-scripts` there, then this script, then the tests of tests/house/test_vendor.py. What npm
unpacked is copied unchanged. A file that is missing, or whose version is not the one that
package.json pins, ends it with a KeyError or an OSError before anything is written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
FRONTEND: Final = ROOT / "frontend"
VENDOR: Final = ROOT / "static" / "vendor"

WANTED: Final[Mapping[str, Mapping[str, Any]]] = {
    "idiomorph": {
        "licence": "0BSD",
        "file": "dist/idiomorph.min.js",
        "texts": {"LICENSE": "node_modules/idiomorph/LICENSE"},
        "contains": (),
    },
    "lightweight-charts": {
        "licence": "Apache-2.0",
        "file": "dist/lightweight-charts.standalone.production.js",
        "texts": {
            "LICENSE": "node_modules/lightweight-charts/LICENSE",
            "NOTICE": "lightweight-charts.NOTICE",
        },
        "contains": ("fancy-canvas",),
    },
}
"""By package: its one file, its licence texts (below frontend/) and what is built into the file.

The NOTICE is that of the project's repository: the package does not bring it.
"""


def main() -> None:
    """Write static/vendor anew from what npm unpacked in frontend/."""
    lock = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    copies: dict[str, Path] = {}
    packages = [_package(name, lock, copies) for name in WANTED]
    shutil.rmtree(VENDOR, ignore_errors=True)
    VENDOR.mkdir(parents=True)
    for name, source in copies.items():
        shutil.copyfile(source, VENDOR / name)
    listed = json.dumps({"packages": packages}, indent=2, ensure_ascii=False)
    (VENDOR / "vendor.json").write_text(listed + "\n", encoding="utf-8")


def _package(name: str, lock: Mapping[str, Any], copies: dict[str, Path]) -> dict[str, Any]:
    """Return what vendor.json says about a package, and note what is to be copied."""
    wanted = WANTED[name]
    version = _version(name, lock)
    path = wanted["file"]
    file = f"{name}-{version}.{Path(path).name.removeprefix(f'{name}.')}"
    copies[file] = FRONTEND / "node_modules" / name / path
    texts = {f"{name}-{version}.{kind}": FRONTEND / text for kind, text in wanted["texts"].items()}
    copies.update(texts)
    return {
        "name": name,
        "version": version,
        "licence": wanted["licence"],
        "source": f"package {name} {version}, {path}, unchanged",
        "integrity": lock[f"node_modules/{name}"]["integrity"],
        "contains": [_built_in(inner, lock) for inner in wanted["contains"]],
        "files": {file: digest(copies[file])},
        "licence_files": {text: digest(source) for text, source in texts.items()},
    }


def _version(name: str, lock: Mapping[str, Any]) -> str:
    """Return the pinned version; what lies in node_modules has to be that one."""
    pinned = lock[""]["dependencies"][name]
    unpacked = FRONTEND / "node_modules" / name / "package.json"
    found = json.loads(unpacked.read_text(encoding="utf-8"))["version"]
    if pinned != found:
        raise KeyError(f"{name}: package.json pins {pinned}, node_modules holds {found}")
    return str(pinned)


def _built_in(name: str, lock: Mapping[str, Any]) -> dict[str, str]:
    told = lock[f"node_modules/{name}"]
    return {"name": name, "version": told["version"], "licence": told["license"]}


def digest(path: Path) -> str:
    """Return a file's digest as a page's integrity attribute has it."""
    return "sha384-" + base64.b64encode(hashlib.sha384(path.read_bytes()).digest()).decode()


if __name__ == "__main__":
    main()
