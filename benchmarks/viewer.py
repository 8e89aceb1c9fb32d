"""What a page costs, of a session and of a replay: its size, building it, opening it in Chromium.

    .venv/bin/python benchmarks/viewer.py [--entries 2000] [--times 5]

build    fold the entries and write the page: ms (median), and the page's size, MB
open     from the start of the navigation to DOMContentLoaded, and to the first paint, in
         headless Chromium: ms (median); target: under 1,000 for 2,000 entries
search   a word that is in every step, to the highlighted matches: ms (median)
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.browser.chromium import Chromium, find_chromium
from tests.comparing import page_of_many as page_of_replay
from tests.viewing import page_of_many

TIMING = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
SEARCH = """
(() => {
  const query = document.getElementById("query");
  const begun = performance.now();
  query.value = "journal";
  query.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  return performance.now() - begun;
})()
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    measure("session", page_of_many, given.entries, given.times)
    measure("replay", page_of_replay, given.entries, given.times)


def measure(name: str, make: Callable[[int], str], entries: int, times: int) -> None:
    built, html = [], ""
    for _ in range(times):
        begun = time.perf_counter()
        html = make(entries)
        built.append(1000 * (time.perf_counter() - begun))
    size = len(html.encode()) / 1e6
    print(f"{name}: {size:.2f} MB, {entries:,} entries")
    print(f"build   {statistics.median(built):8.0f} ms")
    program = find_chromium()
    if program is None:
        print("open    there is no chromium here")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(html, encoding="utf-8")
        with Chromium(program, Path(folder, "profile")) as browser:
            browser.open("about:blank").close()
            loaded, painted, searched = [], [], []
            for _ in range(times):
                tab = browser.open(page.as_uri())
                tab.settle()
                loaded.append(tab.run(TIMING))
                painted.append(tab.run(PAINT))
                searched.append(tab.run(SEARCH))
                tab.close()
    print(f"open    {statistics.median(loaded):8.0f} ms to DOMContentLoaded")
    print(f"        {statistics.median(painted):8.0f} ms to the first paint")
    print(f"search  {statistics.median(searched):8.0f} ms")


if __name__ == "__main__":
    main()
