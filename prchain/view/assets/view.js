"use strict";
/* What the pages do beside being read. Texts of strangers become text nodes, never markup. */
(() => {
  const root = document.documentElement;
  const $ = (selector, from) => (from || document).querySelector(selector);
  const $$ = (selector, from) => [...(from || document).querySelectorAll(selector)];

  const make = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
    }
    for (const child of children.flat(Infinity)) if (child || child === 0) node.append(child);
    return node;
  };
  const draw = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const count = (number) => Number(number).toLocaleString("en-US");
  const words = (name) => String(name).replaceAll("_", " ");

  /* ---- light and dark */
  const kept = (() => { try { return localStorage.getItem("prchain-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  const theme = () => {
    const button = $(".theme");
    const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    tell();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("prchain-theme", root.dataset.theme); } catch { /* a file may keep nothing */ }
      tell();
    });
  };

  /* ---- what has to be scrolled sideways can be reached by keys, and says what it is */
  const wide = () => {
    const told = (box) => {
      const scrolls = box.scrollWidth > box.clientWidth;
      box.classList.toggle("before", box.scrollLeft > 2);
      box.classList.toggle("after", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
      if (!scrolls || box.hasAttribute("tabindex")) return;
      const title = $("h1, h2", box.closest("section") || $("main"));
      for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", title ? title.textContent.trim() : "A table"]]) box.setAttribute(name, value);
    };
    const sizes = new ResizeObserver((entries) => entries.forEach((entry) => told(entry.target)));
    for (const box of $$(".wide:has(> .process)")) box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;
    $$(".wide").forEach((box) => { sizes.observe(box); box.addEventListener("scroll", () => told(box), { passive: true }); });
  };

  /* ---- lists: a filter, and headings that sort */
  const lists = () => {
    for (const table of $$("table[data-filter]")) {
      const rows = $$("tbody tr", table);
      if (rows.length < 2) continue;
      const input = make("input", { type: "search", class: "filter", placeholder: table.dataset.filter, "aria-label": table.dataset.filter });
      const said = make("span", { class: "dim", role: "status" });
      const texts = rows.map((row) => row.textContent.toLowerCase());
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        rows.forEach((row, place) => { row.hidden = !wanted.every((word) => texts[place].includes(word)); });
        said.textContent = wanted.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
      });
      table.parentElement.before(input, said);
    }
    for (const table of $$("table.sortable")) {
      $$("thead th", table).forEach((head, column) => {
        const button = make("button", { type: "button" }, head.textContent);
        head.replaceChildren(button);
        button.addEventListener("click", () => {
          const up = head.getAttribute("aria-sort") !== "ascending";
          $$("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
          head.setAttribute("aria-sort", up ? "ascending" : "descending");
          const value = (row) => {
            const cell = row.cells[column];
            const text = cell.dataset.sort || cell.textContent.trim();
            const number = Number.parseFloat(text.replaceAll(",", ""));
            return cell.classList.contains("n") ? (Number.isNaN(number) ? -Infinity : number) : text.toLowerCase();
          };
          const body = $("tbody", table);
          const sorted = [...body.rows].map((row) => [value(row), row]);
          sorted.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0) * (up ? 1 : -1));
          body.append(...sorted.map((pair) => pair[1]));
        });
      });
    }
  };

  /* ---- a trajectory */
  const KINDS = { system: "system", query: "queries", turn: "turns", thoughts: "reasoning", observation: "observations", comment: "comments", guidance: "guidance", verdict: "verdicts" };
  const REASONS = {
    turn: "under loss", refinement: "of a rejected round", faulty: "malformed, empty, refused or cut off",
    tool_error: "its tool did not do what was asked", command_error: "its command failed",
    unfounded_claim: "claims passing tests that it had not seen", guided: "rests on an observer's words",
    untrained: "kept from training by those who published it",
  };
  const MEASURES = {
    tokens: (message) => (message.tokens_out || 0) || Math.ceil((message.text || "").length / 4),
    time: (message) => message.seconds || 0,
    USD: (message) => message.usd || 0,
    steps: () => 1,
  };

  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  const MOST_LIT = 200; // of one text, in which a search found words

  const isError = (message) => Boolean(message.error || message.timed_out || (message.exit !== null && message.exit !== undefined && message.exit !== 0));

  const diffNode = (files) => make("div", {}, files.map((file) => {
    const lines = [];
    for (const [place, ...content] of file.hunks) {
      lines.push(make("div", { class: "hunk" }, place));
      const numbers = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(place) || [0, 1, 1];
      let old = Number(numbers[1]);
      let now = Number(numbers[2]);
      for (const line of content) {
        const mark = line[0];
        lines.push(make("div", { class: `l ${mark === "+" ? "a" : mark === "-" ? "r" : "c"}` },
          make("i", {}, mark === "+" ? "" : String(old)), make("i", {}, mark === "-" ? "" : String(now)),
          make("b", {}, mark), make("code", {}, line.slice(1))));
        if (mark !== "+") old += 1;
        if (mark !== "-") now += 1;
      }
    }
    return make("details", { class: "file", open: files.length <= 4 },
      make("summary", {}, make("span", { class: "status" }, file.status),
        make("code", { class: "path" }, file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path),
        make("span", { class: "sums" }, make("span", { class: "plus" }, `+${count(file.added)}`), " ", make("span", { class: "minus" }, `−${count(file.removed)}`))),
      file.binary ? make("p", { class: "note" }, "a binary file") : "",
      make("div", { class: "diff", tabindex: "0", role: "group", "aria-label": `Diff of ${file.path}` }, lines),
      file.left_out ? make("p", { class: "note" }, `${count(file.left_out)} more lines are not shown here`) : "");
  }));

  const textNode = (text, open) => {
    const pre = make("pre", { class: "text", tabindex: "0" }, text);
    if (open || text.length < 1500) return pre;
    const lines = text.split("\n").length;
    return make("details", {}, make("summary", {}, `${count(lines)} lines, ${count(text.length)} characters`), pre);
  };

  const namesNode = (title, names) => (names && names.length ? make("details", {}, make("summary", {}, `${title}: ${names.length}`), make("ul", { class: "plain" }, names.map((name) => make("li", {}, make("code", {}, name))))) : "");

  const verdictBody = (it) => [
    make("p", {}, make("span", { class: `badge ${it.accepted ? "good" : it.accepted === null ? "dull" : "bad"}` }, it.accepted ? "accepted" : it.accepted === null ? "unscored" : "sent back"),
      ` gate ${it.gate}`, it.score !== null ? ` · judge ${it.score}` : "", it.judge_error ? ` · judge: ${words(it.judge_error)}` : "", it.tests ? ` · tests ${words(it.tests)}` : "", it.ending ? ` · ended: ${words(it.ending)}` : ""),
    it.comment ? [make("h3", {}, "The judge's words"), make("div", { class: "said" }, it.comment)] : "",
    it.shown && it.shown !== it.comment ? [make("h3", {}, "What went back to the agent"), make("div", { class: "said" }, it.shown)] : "",
    it.shown && it.shown === it.comment ? make("p", { class: "note" }, "All of it went back to the agent.") : "",
    it.comment && !it.shown && it.accepted === false ? make("p", { class: "note" }, "Nothing of it went back to the agent.") : "",
    namesNode("F2P tests that fail", it.f2p_failed), namesNode("P2P tests that it broke", it.p2p_broken),
    namesNode("F2P tests of earlier stages that it broke", it.earlier_broken), namesNode("Failures carried from earlier stages", it.carried_failure),
    namesNode("F2P tests that pass", it.f2p_passed), namesNode("Why the run is not believed", it.cheats), namesNode("Not counted", it.taken_back),
  ];

  const messageBody = (message, data) => {
    if (message.kind === "verdict") return verdictBody(message);
    const parts = [];
    if (message.thoughts) parts.push(make("details", { class: "thoughts" }, make("summary", {}, `Reasoning, ${count(message.thoughts.length)} characters`), make("pre", { class: "text", tabindex: "0" }, message.thoughts)));
    for (const sign of message.signs || []) parts.push(make("span", { class: "sign" }, `⚑ ${words(sign.sign)}: ${sign.meaning}. ${sign.evidence}`));
    if (message.text) {
      if (message.kind === "observation") parts.push(textNode(message.text, message.text.length < 1500));
      else if (message.kind === "system") parts.push(make("details", {}, make("summary", {}, `${count(message.text.length)} characters`), make("pre", { class: "text", tabindex: "0" }, message.text)));
      else parts.push(make("div", { class: "said" }, message.text));
    }
    for (const call of message.calls || []) {
      parts.push(make("div", { class: "call" }, make("b", {}, call.name),
        call.arguments.map(([name, text]) => [name ? make("div", { class: "arg" }, name) : "", textNode(text, text.length < 3000)])));
    }
    if (message.whole) parts.push(make("p", {}, make("a", { href: message.whole }, "The whole of this message")));
    if (message.diff !== undefined) parts.push(make("h3", {}, "What the step changed"), diffNode(data.diffs[message.diff]));
    return parts;
  };

  const head = (message) => {
    const facts = [];
    if (message.kind === "verdict") return [make("b", {}, `Verdict on stage ${message.stage}, attempt ${message.attempt}`)];
    if (message.step && message.kind === "turn") facts.push(make("a", { href: `#step-${message.step}` }, make("b", {}, `Step ${message.step}`)));
    else facts.push(make("b", {}, message.kind === "observation" ? `← ${message.tool || "observation"}` : words(message.kind)));
    facts.push(`stage ${message.stage}.${message.attempt}`);
    if (message.kind === "turn") {
      facts.push(make("span", { class: `loss ${message.train ? "on" : "off"}`, title: REASONS[message.reason] || message.reason }, message.train ? "under loss" : `no loss: ${REASONS[message.reason] || words(message.reason)}`));
      if (message.tokens_out) facts.push(`${count(message.tokens_out)} tokens`);
      if (message.usd) facts.push(`${message.usd.toFixed(4)} USD`);
    }
    if (message.seconds >= 0.05) facts.push(`${message.seconds.toFixed(1)} s`);
    if (message.exit !== null && message.exit !== undefined && message.exit !== 0) facts.push(make("span", { class: "badge odd" }, `exit ${message.exit}`));
    if (message.timed_out) facts.push(make("span", { class: "badge bad" }, "timed out"));
    if (message.error) facts.push(make("span", { class: "badge bad" }, words(message.error)));
    if (message.tests) facts.push(make("span", { class: "badge dull" }, "tests"));
    if (message.diff !== undefined) facts.push(make("span", { class: "badge good" }, "edit"));
    if (message.dropped) facts.push("older messages were left out of its request");
    return facts.map((fact) => (typeof fact === "string" ? make("span", {}, fact) : fact));
  };

  const searchable = (message) => [message.text, message.thoughts, message.comment, message.shown, ...(message.calls || []).flatMap((call) => [call.name, ...call.arguments.flat()])].filter(Boolean).join("\n").toLowerCase();

  const viewer = (box, data) => {
    const messages = data.messages;
    const nodes = [];
    const filled = new Set();
    const steps = make("div", { class: "steps", id: "conversation" });
    const seen = new Set();
    messages.forEach((message, place) => {
      const node = make("article", { class: `msg ${message.kind}`, tabindex: "-1" }, make("header", {}, head(message)));
      if (message.kind === "verdict") node.id = `verdict-${message.stage}-${message.attempt}`;
      else if (message.kind === "turn") node.id = `step-${message.step}`;
      else if (message.kind === "query" && !seen.has(message.stage)) node.id = `stage-${message.stage}`;
      if (message.kind === "query") seen.add(message.stage);
      node.dataset.place = place;
      node.style.minHeight = `${Math.min(600, 40 + 18 * Math.min(24, ((message.text || "").length + (message.calls || []).reduce((sum, call) => sum + call.arguments.flat().join("").length, 0)) / 90))}px`;
      nodes.push(node);
      steps.append(node);
    });
    const fill = (place) => {
      if (filled.has(place)) return;
      filled.add(place);
      nodes[place].append(...messageBody(messages[place], data).flat(3).filter(Boolean));
      nodes[place].style.minHeight = "";
      if (needle) lightUp(place);
    };
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { fill(Number(entry.target.dataset.place)); near.unobserve(entry.target); }
    }, { rootMargin: "1200px 0px" });

    /* where we are */
    let current = -1;
    const go = (place, focus) => {
      if (place < 0 || place >= nodes.length) return;
      for (let other = Math.max(0, place - 3); other < Math.min(nodes.length, place + 4); other += 1) fill(other);
      nodes[current]?.classList.remove("here");
      current = place;
      nodes[place].classList.add("here");
      nodes[place].scrollIntoView({ block: "start" });
      if (focus !== false) nodes[place].focus({ preventScroll: true });
      const id = nodes[place].id;
      if (id) history.replaceState(null, "", `#${id}`);
      mark();
    };
    const shownFrom = (start, by, test) => {
      for (let place = start + by; place >= 0 && place < nodes.length; place += by) if (!nodes[place].hidden && test(messages[place])) return place;
      return -1;
    };
    const tests = {
      error: isError, edit: (message) => message.diff !== undefined, test: (message) => message.tests,
      verdict: (message) => message.kind === "verdict", sign: (message) => Boolean(message.signs && message.signs.length),
    };
    const jump = (name, by) => {
      let found = shownFrom(current, by, tests[name]);
      if (found < 0) found = shownFrom(by > 0 ? -1 : nodes.length, by, tests[name]);
      go(found);
    };

    /* the bar */
    const line = draw("svg", { class: "timeline", viewBox: "0 0 1000 26", preserveAspectRatio: "none", role: "img", "aria-label": "Steps by size; a click goes to a step" });
    const places = [];
    let frame = null;
    const measure = make("select", { "aria-label": "What the bar shows" }, Object.keys(MEASURES).map((name) => make("option", { value: name }, `by ${name}`)));
    const bar = () => {
      const size = MEASURES[measure.value];
      const units = messages.map((message) => (message.kind === "turn" || message.kind === "observation" ? size(message) : 0));
      const total = units.reduce((sum, unit) => sum + unit, 0) || 1;
      line.replaceChildren();
      places.length = 0;
      let x = 0;
      const lanes = [];
      messages.forEach((message, place) => {
        const width = (1000 * units[place]) / total;
        places.push([x, width]);
        if (message.kind === "query" || message.kind === "comment") lanes.push([x, "q"]);
        if (message.kind === "verdict") lanes.push([x, message.accepted ? "t" : "x"]);
        if (width > 0) {
          const kind = isError(message) ? "x" : message.diff !== undefined ? "e" : "t";
          line.append(draw("rect", { class: `${kind}${message.step % 2 ? "" : " odd2"}`, x: x.toFixed(2), y: 6, width: Math.max(width - 0.4, 0.3).toFixed(2), height: 20 }));
        }
        x += width;
      });
      for (const [at, kind] of lanes) line.append(draw("rect", { class: kind, x: Math.max(0, at - 1.2).toFixed(2), y: 0, width: 2.4, height: 26 }));
      frame = draw("rect", { class: "now", x: 0, y: 1, width: 0, height: 24 });
      line.append(frame);
      mark();
    };
    const mark = () => {
      if (!frame || current < 0) return;
      frame.setAttribute("x", places[current][0].toFixed(2));
      frame.setAttribute("width", Math.max(places[current][1], 3).toFixed(2));
    };
    line.addEventListener("click", (event) => {
      const box = line.getBoundingClientRect();
      const x = (1000 * (event.clientX - box.left)) / box.width;
      let place = 0;
      while (place + 1 < places.length && places[place + 1][0] <= x) place += 1;
      go(place);
    });
    measure.addEventListener("change", bar);

    /* filters */
    const off = new Set();
    const apply = () => {
      messages.forEach((message, place) => { nodes[place].hidden = off.has(message.kind); });
      steps.classList.toggle("nothoughts", off.has("thoughts"));
    };
    const present = new Set(messages.map((message) => message.kind));
    if (messages.some((message) => message.thoughts)) present.add("thoughts");
    const filters = Object.keys(KINDS).filter((kind) => present.has(kind)).map((kind) => {
      const input = make("input", { type: "checkbox", checked: true });
      input.addEventListener("change", () => { if (input.checked) off.delete(kind); else off.add(kind); apply(); });
      return make("label", {}, input, KINDS[kind]);
    });

    /* search */
    let needle = "";
    let pattern = null;
    let hits = [];
    let texts = null;
    const found = make("span", { class: "dim", role: "status" });
    const search = make("input", { type: "search", placeholder: "Search the conversation", "aria-label": "Search the conversation" });
    const lightUp = (place) => {
      const walker = document.createTreeWalker(nodes[place], NodeFilter.SHOW_TEXT);
      const wanted = [];
      while (walker.nextNode()) wanted.push(walker.currentNode);
      for (const text of wanted) {
        const places = [...text.data.matchAll(pattern)].slice(0, MOST_LIT);
        for (const { index, 0: words } of places.reverse()) {
          const rest = text.splitText(index);
          rest.splitText(words.length);
          const lit = make("mark", { class: "hit" });
          rest.replaceWith(lit);
          lit.append(rest);
        }
        if (places.length) for (let parent = text.parentElement; parent && parent !== nodes[place]; parent = parent.parentElement) if (parent.tagName === "DETAILS") parent.open = true;
      }
    };
    const unlight = () => { for (const lit of $$("mark.hit", steps)) { const parent = lit.parentNode; lit.replaceWith(...lit.childNodes); parent.normalize(); } };
    const look = () => {
      unlight();
      needle = search.value.trim().toLowerCase();
      texts ||= messages.map(searchable);
      hits = needle.length < 2 ? [] : texts.flatMap((text, place) => (text.includes(needle) && !nodes[place].hidden ? [place] : []));
      if (needle.length < 2) needle = "";
      pattern = new RegExp(needle.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
      found.textContent = needle ? `${count(hits.length)} ${hits.length === 1 ? "message" : "messages"}` : "";
      for (const place of hits) if (filled.has(place)) lightUp(place);
    };
    search.addEventListener("input", look);
    const nextHit = (by) => {
      if (!hits.length) return;
      const after = by > 0 ? hits.find((place) => place > current) ?? hits[0] : hits.findLast((place) => place < current) ?? hits.at(-1);
      go(after, false);
    };
    search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); nextHit(event.shiftKey ? -1 : 1); } });

    const keys = { e: "error", d: "edit", t: "test", v: "verdict", s: "sign" };
    const buttons = Object.entries(keys).filter(([, name]) => messages.some(tests[name])).map(([key, name]) => {
      const button = make("button", { type: "button", title: `Next ${name}: key ${key}; with Shift the one before`, "aria-keyshortcuts": key }, `next ${name} `, make("kbd", {}, key));
      button.addEventListener("click", (event) => jump(name, event.shiftKey ? -1 : 1));
      return button;
    });
    const key = (kind, says) => {
      const swatch = draw("svg", { class: "key", viewBox: "0 0 1 1", "aria-hidden": "true" });
      swatch.append(draw("rect", { class: kind, width: 1, height: 1 }));
      return make("span", {}, swatch, says);
    };
    const legend = make("span", { class: "legend dim" }, key("t", "step"), key("e", "edit"), key("x", "failure or sent back"), key("q", "query or review"));
    const tools = make("div", { class: "tools" }, line,
      make("div", { class: "toolrow" }, measure, legend, search, found, buttons),
      make("div", { class: "toolrow" }, filters, make("span", { class: "keys" }, make("kbd", {}, "j"), " ", make("kbd", {}, "k"), " next and previous step  ", make("kbd", {}, "/"), " search  ", make("kbd", {}, "Shift"), " with the key of a button: the one before")));
    box.replaceChildren(tools, data.problem ? make("p", { class: "note" }, `No diffs of steps: ${data.problem}`) : "", steps);
    nodes.slice(0, 12).forEach((_, place) => fill(place));
    nodes.forEach((node) => near.observe(node));
    bar();

    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      const key = event.key.toLowerCase();
      const isTurn = (message) => message.kind === "turn" || message.kind === "query";
      if (key === "j") go(shownFrom(current, 1, isTurn));
      else if (key === "k") go(shownFrom(current, -1, isTurn));
      else if (key === "/") { event.preventDefault(); search.focus(); }
      else if (keys[key]) jump(keys[key], event.shiftKey ? -1 : 1);
    });
    const fromHash = () => {
      const place = nodes.findIndex((node) => node.id && `#${node.id}` === location.hash);
      if (place >= 0) go(place);
    };
    addEventListener("hashchange", fromHash);
    fromHash();
    root.dataset.ready = "yes";
  };

  const load = (box) => {
    $("#loading").hidden = false;
    const failed = () => { $("#loading").textContent = "The conversation could not be loaded; it is there as text."; };
    globalThis.prchainData = (packed) => { unpacked(packed).then((data) => viewer(box, data)).catch(failed); };
    const script = make("script", { src: box.dataset.src });
    script.addEventListener("error", failed);
    document.head.append(script);
  };

  const start = () => {
    theme();
    lists();
    wide();
    const box = $("#viewer");
    if (box) load(box);
    else root.dataset.ready = "yes";
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
