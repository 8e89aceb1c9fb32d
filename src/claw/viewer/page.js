"use strict";
(() => {
  const root = document.documentElement;
  const main = document.getElementById("timeline");
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const keys = document.getElementById("keys");
  const STOP = main.dataset.stops;
  const stops = [...document.querySelectorAll(STOP)];
  const MOST = 5000;

  const reveal = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
  };
  const press = (id, act) => document.getElementById(id).addEventListener("click", act);

  // -- what the keys go to: steps, or differences

  const current = () => {
    const focused = document.activeElement.closest(STOP);
    if (focused) return stops.indexOf(focused);
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return -1;
    if (target.matches(STOP)) return stops.indexOf(target);
    const before = Node.DOCUMENT_POSITION_PRECEDING;
    return stops.findLastIndex((stop) => target.compareDocumentPosition(stop) & before);
  };
  const go = (number) => {
    const stop = stops[Math.max(0, Math.min(stops.length - 1, number))];
    if (!stop) return;
    history.replaceState(null, "", "#" + stop.id);
    stop.focus({ preventScroll: true });
    stop.scrollIntoView({ block: "start" });
  };
  const toggle = (area, open) => {
    const all = [...area.querySelectorAll("details")];
    const wanted = open ?? all.some((each) => !each.open);
    for (const each of all) each.open = wanted;
  };

  // -- search

  const INLINE = new Set("A BDI B CODE DEL EM I INS KBD S SMALL SPAN STRONG".split(" "));
  let blocks = null;
  let matches = [];
  let place = -1;

  const read = () => {
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    const out = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      let owner = node.parentElement;
      while (INLINE.has(owner.tagName)) owner = owner.parentElement;
      let last = out[out.length - 1];
      if (!last || last.owner !== owner) out.push((last = { owner, nodes: [], starts: [], text: "" }));
      last.nodes.push(node);
      last.starts.push(last.text.length);
      last.text += node.data;
    }
    return out;
  };
  const boundary = (block, at, range, set) => {
    let n = block.starts.length - 1;
    while (n > 0 && (block.starts[n] > at || (set === "setEnd" && block.starts[n] === at))) n--;
    range[set](block.nodes[n], at - block.starts[n]);
  };
  const rangeOf = (match) => {
    const range = document.createRange();
    boundary(match.block, match.from, range, "setStart");
    boundary(match.block, match.to, range, "setEnd");
    return range;
  };
  const find = () => {
    const wanted = query.value.trim();
    matches = [];
    place = -1;
    if (wanted) {
      blocks ??= read();
      const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&"), "giu");
      for (const block of blocks) {
        for (const hit of block.text.matchAll(pattern))
          matches.push({ block, from: hit.index, to: hit.index + hit[0].length });
        if (matches.length >= MOST) break;
      }
    }
    paint();
  };
  const paint = () => {
    if (window.Highlight) {
      CSS.highlights.set("found", new Highlight(...matches.map(rangeOf)));
      if (matches[place]) CSS.highlights.set("here", new Highlight(rangeOf(matches[place])));
      else CSS.highlights.delete("here");
    }
    tell();
  };
  const tell = () => {
    const many = matches.length >= MOST ? MOST + "+" : String(matches.length);
    found.value = !query.value.trim() ? "" : place < 0 ? many + " found" : place + 1 + " / " + many;
  };
  const jump = (by) => {
    if (!matches.length) return;
    place = place < 0 && by < 0 ? matches.length - 1 : (place + by + matches.length) % matches.length;
    const match = matches[place];
    const range = rangeOf(match);
    reveal(range.startContainer);
    if (window.Highlight) CSS.highlights.set("here", new Highlight(range));
    const stop = match.block.owner.closest(STOP);
    if (stop && document.activeElement !== query) stop.focus({ preventScroll: true });
    range.startContainer.parentElement.scrollIntoView({ block: "center" });
    tell();
  };

  // -- the rest

  const theme = () => {
    const dark = getComputedStyle(root).colorScheme === "dark" ||
      (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
  };
  const land = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    reveal(target);
    target.scrollIntoView({ block: "start" });
    if (target.matches(STOP)) target.focus({ preventScroll: true });
  };
  const axis = (button) => {
    const charts = button.closest(".charts");
    charts.dataset.axis = button.dataset.axis;
    for (const each of charts.querySelectorAll("[data-axis]"))
      each.setAttribute("aria-pressed", String(each === button));
  };

  let waiting = 0;
  query.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 120);
  });
  query.form.addEventListener("submit", (event) => event.preventDefault());
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(waiting);
      if (!matches.length || place < 0) find();
      jump(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      query.value = "";
      find();
      query.blur();
    }
  });
  press("next", () => jump(1));
  press("previous", () => jump(-1));
  press("unfold", () => toggle(main, true));
  press("fold", () => toggle(main, false));
  press("theme", theme);
  press("help", () => keys.showModal());
  for (const button of document.querySelectorAll(".choice button"))
    button.addEventListener("click", () => axis(button));

  const KEYS = {
    j: () => go(current() + 1),
    k: () => go(current() - 1),
    o: () => toggle(stops[current()] ?? main),
    Enter: () => toggle(document.activeElement),
    n: () => jump(1),
    N: () => jump(-1),
    t: theme,
    "/": () => query.select(),
    "?": () => keys.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    if (event.target.matches("input")) return;
    if (event.key === "Enter" && !event.target.matches(STOP)) return;
    const act = Object.hasOwn(KEYS, event.key) && KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...main.querySelectorAll("details:not([open], .run, .run *, .pair .prompt)")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
  addEventListener("hashchange", land);
  land();
})();
