"""Generated documents are what `scripts/generate` would write now."""

import importlib.util
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_generated_documents_have_not_drifted() -> None:
    spec = importlib.util.spec_from_file_location("generated", PROJECT / "scripts/generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [
        name
        for name, text in module.documents().items()
        if (PROJECT / name).read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run scripts/generate: {', '.join(stale)}"
