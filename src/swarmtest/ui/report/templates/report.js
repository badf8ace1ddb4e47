"use strict";
(() => {
  let data = null;
  const MANY_ROWS = 10;
  document.documentElement.classList.add("js");

  function make(tag, attributes = {}, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }

  // Tables: sorted by a click on a head, filtered by words

  function valueOf(row, column) {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function sort(table, head, column) {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(valueOf(a, column), valueOf(b, column)));
    body.append(...(down ? rows.reverse() : rows));
  }

  function filterBox(rows, words) {
    const box = make("input", { class: "filter", type: "search", placeholder: words, "aria-label": words });
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const row of rows()) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    return box;
  }

  function makeSortable(table) {
    if (table.tBodies[0].rows.length < 2) return;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      button.addEventListener("click", () => sort(table, head, column));
      head.replaceChildren(button);
    });
    if (table.tBodies[0].rows.length > MANY_ROWS) {
      table.parentElement.before(filterBox(() => table.tBodies[0].rows, "filter these rows"));
    }
  }

  // Sources: a click on a line shows what makes tests reach it

  const percent = (thousandths) => `${thousandths / 10}%`;

  function range([, , share, low, high, base]) {
    const drawn = make("span", { class: "range" });
    const place = (tag, style) => {
      const part = make(tag);
      Object.assign(part.style, style);
      drawn.append(part);
    };
    place("b", { left: percent(base) });
    place("i", { left: percent(low), width: percent(high - low) });
    place("s", { left: percent(share) });
    return drawn;
  }

  function roleRow(discovery) {
    const [feature, sign, share, low, high, base, q] = discovery;
    const role = sign > 0 ? "trigger" : "suppressor";
    return make("tr", {},
      make("td", { class: role }, `${sign > 0 ? "▲" : "▼"} ${data.features[feature]}`),
      make("td", { class: role }, role),
      make("td", { class: role }, range(discovery)),
      make("td", {}, `in ${percent(share)} of the hits (${percent(low)} to ${percent(high)}), by chance ${percent(base)}, q ${q}`));
  }

  function rolesOf(number) {
    const [, discoveries, unsure, irrelevant, insufficient, fixed] = data.groups[number];
    const found = [];
    if (discoveries.length) found.push(make("table", {}, make("tbody", {}, ...discoveries.map(roleRow))));
    const rest = [[unsure, "with a role before correction only"], [irrelevant, "irrelevant"],
      [insufficient, "with too few hits to tell"], [fixed, "without variation"]];
    const told = rest.filter(([count]) => count).map(([count, words]) => `${count} ${words}`);
    const head = discoveries.length ? "Other features: " : "No trigger or suppressor. Features: ";
    if (told.length) found.push(make("p", { class: "note" }, head + told.join(", ")));
    return found;
  }

  function place([name, hits, group], tests) {
    const share = tests ? ` (${(100 * hits / tests).toFixed(1)}%)` : "";
    const head = make("summary", {}, `${name}: ${hits ? `${hits.toLocaleString("en")} tests${share}` : "✗ not reached"}`);
    return make("details", {}, head, ...(group < 0 ? [] : rolesOf(group)));
  }

  function detail(row) {
    const [id, line] = row.id.split("L");
    const file = data.files[id];
    const target = `line:${file.path}:${line}`;
    const missed = row.classList.contains("missed");
    const tests = `${file.tests.toLocaleString("en")} tests`;
    const told = missed ? `: not reached by any of ${tests}` : `: ${row.cells[1].textContent} of ${tests} (${row.cells[2].textContent})`;
    const inside = [make("p", {}, make("strong", {}, target), told)];
    if (row.dataset.g !== undefined) inside.push(...rolesOf(Number(row.dataset.g)));
    inside.push(...(file.places[line] || []).map((one) => place(one, file.tests)));
    if (missed) return make("tr", { class: "detail" }, make("td", { colspan: "5" }, ...inside));
    const plain = /^[\w@%+=:,./-]+$/.test(target);
    const quoted = plain ? target : `'${target.replaceAll("'", "'\"'\"'")}'`;
    inside.push(make("p", { class: "command" }, make("code", {}, data.command.replace("TARGET", () => quoted))));
    return make("tr", { class: "detail" }, make("td", { colspan: "5" }, ...inside));
  }

  function toggle(row) {
    const open = row.classList.toggle("open");
    if (open) history.replaceState(null, "", `#${row.id}`); // the address of the line, to be passed on
    const link = row.querySelector("th a");
    link.setAttribute("aria-expanded", String(open));
    if (open) row.after(detail(row));
    else if (row.nextElementSibling?.classList.contains("detail")) row.nextElementSibling.remove();
  }

  function listingFilter(table) {
    const choice = make("select", { class: "filter", "aria-label": "which lines" });
    const kinds = { "all lines": "tr", "lines with triggers or suppressors": "tr.hit.told", "lines not reached": "tr.missed" };
    for (const words of Object.keys(kinds)) choice.append(make("option", { value: kinds[words] }, words));
    choice.addEventListener("change", () => {
      for (const row of [...table.tBodies[0].rows]) {
        if (row.classList.contains("open")) toggle(row);
        row.hidden = !row.matches(choice.value);
      }
    });
    return choice;
  }

  function makeClickable(table) {
    for (const row of table.tBodies[0].rows) {
      if (row.dataset.g !== undefined && data.groups[row.dataset.g][1].length) row.classList.add("told");
      if (row.id) row.querySelector("th a").setAttribute("aria-expanded", "false");
    }
    table.parentElement.before(listingFilter(table));
    table.addEventListener("click", (event) => {
      const row = event.target.closest("tr.hit, tr.missed");
      if (!row || event.target.closest(".detail") || String(getSelection())) return;
      event.preventDefault();
      toggle(row);
    });
  }

  // Copying code and commands

  async function copy(button, text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // not allowed for this page: the old way asks nobody
      const field = make("textarea", { class: "unseen" });
      field.value = text;
      button.after(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      button.focus();
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }

  function copyButton(text) {
    const button = make("button", { class: "copy", type: "button" }, "copy");
    button.addEventListener("click", () => copy(button, text()));
    return button;
  }

  function addCopyButtons(part) {
    for (const box of part.querySelectorAll("pre:not(.output)")) {
      const around = make("div", { class: "code-box" });
      box.replaceWith(around);
      around.append(box, copyButton(() => box.textContent));
      // The end of a traceback says what happened.
      if (box.dataset.end !== undefined) box.scrollTop = box.scrollHeight;
      box.closest("details")?.addEventListener("toggle", () => {
        if (box.dataset.end !== undefined) box.scrollTop = box.scrollHeight;
      });
    }
    for (const line of part.querySelectorAll(".command:not(.preview)")) {
      const text = line.querySelector("code").textContent;
      line.append(copyButton(() => text));
    }
  }

  // An address may name a fault or a line that is folded away, or that the server adds later

  let wanted = "";

  function goTo() {
    const target = wanted && document.getElementById(wanted);
    if (!target) return;
    wanted = "";
    for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    if (target.matches("tr.hit, tr.missed") && !target.classList.contains("open")) toggle(target);
    target.scrollIntoView({ block: target.matches("tr") ? "center" : "start" });
  }

  function newAddress() {
    try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { wanted = ""; }
    goTo();
  }

  // For all of a page, and for a part that was put into it later

  function enliven(part) {
    const told = part.querySelector("#data");
    if (told) data = JSON.parse(told.textContent);
    part.querySelectorAll("table.sortable").forEach(makeSortable);
    part.querySelectorAll("table.source").forEach(makeClickable);
    addCopyButtons(part);
    goTo();
  }

  enliven(document);
  newAddress();
  addEventListener("hashchange", newAddress);
  globalThis.swarmtest = { enliven };

  // What is closed is on paper, too, but for sources; older browsers need help with that

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not(.listing):not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
