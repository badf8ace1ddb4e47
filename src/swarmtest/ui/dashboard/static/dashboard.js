"use strict";
// What a page of the dashboard does by itself: it stays up to date, shows the command that a form
// stands for, and remembers dark or light. Whatever it puts into the page was rendered, and
// escaped, by the server for this very address; it makes no markup of its own.
(() => {
  const topics = [...document.body.dataset.topics.split(" ").filter(Boolean), "jobs"];
  const CALM = 1000; // milliseconds between two updates
  const QUIET = 8000; // milliseconds between two announcements for screen readers

  // Dark and light

  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    document.cookie = `swarmtest_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
  });

  // Forms and the commands they stand for

  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);

  function commandOf(form) {
    const words = [form.dataset.command];
    for (const field of form.querySelectorAll("[data-positional]")) words.push(quoted(field.value.trim() || field.placeholder.split(",")[0]));
    for (const field of form.querySelectorAll("[data-option]")) {
      if (field.value.trim()) words.push(field.dataset.option, quoted(field.value.trim()));
    }
    const name = form.querySelector("[data-option-name]");
    if (name) words.push(`--${name.value}`, quoted(form.querySelector("[data-option-value]").value.trim() || "…"));
    for (const field of form.querySelectorAll("[data-flag]")) if (field.checked) words.push(field.dataset.flag);
    return words.join(" ");
  }

  for (const form of document.querySelectorAll("form.command-form")) {
    const show = () => { form.querySelector("[data-preview]").textContent = commandOf(form); };
    form.addEventListener("input", show);
    show();
  }

  // Live parts: the page asks for itself again, and takes over what is marked as live

  const parts = () => document.querySelectorAll("[data-live]");
  const shown = new Map();
  for (const part of parts()) shown.set(part.id, part.innerHTML);

  const isBusy = (part) =>
    (part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) ||
    [...part.querySelectorAll("input.filter, select.filter")].some((box) => box.value && box.value !== "tr") ||
    (String(getSelection()) && part.contains(getSelection().anchorNode));

  function remembered(part) {
    const sorted = [...part.querySelectorAll("table.sortable")].map((table) => {
      const heads = [...table.tHead.rows[0].cells];
      const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
      return column < 0 ? null : [column, heads[column].getAttribute("aria-sort")];
    });
    return {
      open: new Map([...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open])),
      ticked: [...part.querySelectorAll("input:checked")].map((box) => box.value),
      scrolled: [...part.querySelectorAll(".scroll, .output")].map((one) => [one.scrollLeft, one.scrollTop, one.scrollTop + one.clientHeight >= one.scrollHeight - 4]),
      focused: part.contains(document.activeElement) ? [...part.querySelectorAll("a, button, summary, [tabindex]")].indexOf(document.activeElement) : -1,
      sorted,
    };
  }

  function restore(part, before) {
    for (const one of part.querySelectorAll("details[id]")) if (before.open.has(one.id)) one.open = before.open.get(one.id);
    for (const box of part.querySelectorAll("input[type=checkbox]")) box.checked = before.ticked.includes(box.value);
    [...part.querySelectorAll("table.sortable")].forEach((table, place) => {
      const [column, direction] = before.sorted[place] || [];
      const button = column === undefined ? null : table.tHead.rows[0].cells[column]?.querySelector("button");
      if (!button) return;
      button.click();
      if (direction === "descending") button.click();
    });
    [...part.querySelectorAll(".scroll, .output")].forEach((one, place) => {
      const [left, top, atEnd] = before.scrolled[place] || [0, 0, false];
      one.scrollLeft = left;
      one.scrollTop = atEnd && one.matches(".output") ? one.scrollHeight : top;
    });
    if (before.focused >= 0) [...part.querySelectorAll("a, button, summary, [tabindex]")][before.focused]?.focus({ preventScroll: true });
  }

  function takeOver(fresh) {
    for (const part of parts()) {
      const newer = fresh.getElementById(part.id);
      if (!newer || shown.get(part.id) === newer.innerHTML || isBusy(part)) continue;
      const before = remembered(part);
      shown.set(part.id, newer.innerHTML);
      part.replaceChildren(...document.adoptNode(newer).childNodes);
      globalThis.swarmtest.enliven(part);
      restore(part, before);
    }
  }

  let asked = 0, waiting = null, running = false;

  async function refresh() {
    waiting = null;
    if (running || document.hidden) { schedule(); return; }
    running = true;
    asked = Date.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server is gone: the stream says so */ } finally { running = false; }
  }

  function schedule() {
    if (waiting === null) waiting = setTimeout(refresh, Math.max(0, asked + CALM - Date.now()));
  }

  // Events: only what has changed, not what it is now

  const live = document.getElementById("live"), news = document.getElementById("news");
  let told = 0;

  function say(event) {
    if (event.new) {
      told = Date.now();
      news.textContent = `${event.new} new ${event.new === 1 ? "fault" : "faults"}; ${event.tests.toLocaleString("en")} tests`;
    } else if (event.tests !== undefined && Date.now() - told > QUIET) {
      told = Date.now();
      news.textContent = `${event.tests.toLocaleString("en")} tests, ${event.faults} faults`;
    }
  }

  const concerns = (topic) => topics.some((wanted) => topic === wanted || topic.startsWith(`${wanted}:`));

  function listen() {
    const stream = new EventSource("/events");
    let lost = false;
    stream.addEventListener("open", () => {
      live.textContent = "● live";
      live.classList.add("on");
      if (lost) schedule(); // what was missed
      lost = false;
    });
    stream.addEventListener("error", () => {
      lost = true;
      live.textContent = "○ not live";
      live.classList.remove("on");
    });
    stream.addEventListener("message", (message) => {
      const event = JSON.parse(message.data);
      if (event.problem) news.textContent = event.problem;
      if (!concerns(event.topic)) return;
      say(event);
      schedule();
    });
    addEventListener("pagehide", () => stream.close());
  }

  addEventListener("visibilitychange", () => { if (!document.hidden && waiting !== null) schedule(); });
  listen();
  // What was computed between this page and its stream would not be told
  if (document.querySelector(".computing")) setTimeout(schedule, 1500);
  for (const output of document.querySelectorAll(".output")) output.scrollTop = output.scrollHeight;
})();
