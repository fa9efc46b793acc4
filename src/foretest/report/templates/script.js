"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const root = document.documentElement;

  /* Text only ever becomes text: no string is parsed as markup here. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /* Light and dark: as the system is set, until the reader says otherwise. */
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Show this page in ${isDark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  system.addEventListener("change", nameTheme);
  theme.hidden = false;
  nameTheme();

  /* Charts: those in sight first, then the others; all of them without waiting for a scroll. */
  const specs = json("charts");
  const config = json("chart-config");
  const nothing = () => Promise.reject(new Error("charts load nothing"));
  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, config, defaultStyle: false,
    tooltip: { theme: "foretest", disableDefaultStyle: true },
    loader: { load: nothing, sanitize: nothing, http: nothing, file: nothing },
  };
  async function draw(place) {
    try {
      await vegaEmbed(place, specs[place.dataset.chart], options);
      /* the place is one picture with one description; its parts are not to be read out one by one */
      for (const part of all("svg", place)) part.setAttribute("aria-hidden", "true");
      all("details", place).forEach((part) => part.remove());
      place.dataset.drawn = "yes";
    } catch (error) {
      place.replaceChildren(make("p", { class: "failed" }, "This chart could not be drawn."));
      console.error(error);
    }
  }
  (async () => {
    const places = all("[data-chart]");
    const hidden = (place) => place.closest(".away") !== null;
    for (const place of [...places.filter((p) => !hidden(p)), ...places.filter(hidden)]) await draw(place);
    root.dataset.charts = "drawn";
  })();

  /* Switches over panels. */
  const show = (name, option) => {
    for (const panel of all("[data-panel]").filter((p) => p.dataset.panel === name)) {
      panel.classList.toggle("away", panel.dataset.option !== option);
    }
  };
  all("[data-switch]").forEach((input) => input.addEventListener("change", () => show(input.dataset.switch, input.value)));

  /* Tables that sort: by the number a cell carries, else by its text; what has no number goes last. */
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if ("value" in cell.dataset) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    const text = cell.textContent.trim();
    const plain = text.replace(/−/g, "-").replace(/[,\s%]/g, "");
    return plain === "–" || text === "" ? null : plain !== "" && !Number.isNaN(Number(plain)) ? Number(plain) : text.toLowerCase();
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  function sort(button) {
    const header = button.closest("th");
    const body = header.closest("table").tBodies[0];
    const column = header.cellIndex;
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of all("th[aria-sort]", header.parentElement)) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down ? compare(b, a) : compare(a, b));
    body.append(...rows.map(([, row]) => row));
  }
  all(".sort").forEach((button) => button.addEventListener("click", () => sort(button)));

  /* Tooltips go away with Escape, and come back with the next hover or focus. */
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") document.body.classList.add("quieted"); });
  for (const tile of all(".tile")) {
    for (const kind of ["mouseenter", "focus"]) tile.addEventListener(kind, () => document.body.classList.remove("quieted"));
  }

  /* Downloads: the very text that is in the page. */
  async function textOf(id) {
    const element = document.getElementById(id);
    if (element.type === "application/json") return element.textContent;
    const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  for (const button of all(".download")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const blob = new Blob([await textOf(button.dataset.file)], { type: "application/json" });
      const link = make("a", { href: URL.createObjectURL(blob), download: document.getElementById(button.dataset.file).dataset.name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  /* Commands to copy. */
  for (const button of all(".copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  /* The tests of a history: search, filter, read-out. */
  for (const list of all(".test-list")) {
    const tests = json(list.dataset.tests);
    const rows = all("tbody tr", list);
    const search = list.querySelector("input[type=search]");
    const said = list.querySelector(".shown");
    const readout = list.querySelector(".readout");
    const filters = () => all("[data-filter]", list).map((input) => [input.dataset.filter, input.value]);
    const update = () => {
      const wanted = search.value.trim().toLowerCase();
      const asked = filters();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !(row.dataset.name.toLowerCase().includes(wanted) && asked.every(([name, value]) => value === "" || row.dataset[name] === value));
        shown += row.hidden ? 0 : 1;
      }
      said.textContent = `${shown} of ${rows.length} tests`;
    };
    search.addEventListener("input", update);
    all("[data-filter]", list).forEach((input) => input.addEventListener("change", update));
    const bar = (estimate, verdict) => {
      if (!estimate.bar) return "no interval";
      const drawn = make("div", { class: `bar ${verdict}`, style: estimate.bar, "aria-hidden": "true" }, make("b"));
      if (estimate.point) drawn.append(make("i"));
      return drawn;
    };
    const open = (row, focus) => {
      const test = tests[Number(row.dataset.test)];
      for (const other of rows) other.setAttribute("aria-selected", String(other === row));
      const lines = test.estimates.map((e) => {
        const chip = make("span", { class: `chip ${e.verdict}` }, make("i", { "aria-hidden": "true" }, e.sign), e.verdict);
        const line = make("tr", e.strong ? { class: "strong" } : {},
          make("th", { scope: "row", class: "name" }, e.label), make("td", { class: "right" }, e.uplift),
          make("td", { class: "right" }, e.interval), make("td", { class: "interval" }, bar(e, e.verdict)),
          make("td", {}, chip), make("td", {}, e.call));
        return line;
      });
      const head = ["estimator", "uplift", "interval", "", "verdict", "against online"].map((text) => make("th", { scope: "col" }, text));
      readout.replaceChildren(
        make("h3", { tabindex: "-1" }, test.name), make("p", { class: "note" }, test.said),
        make("div", { class: "scroll" }, make("table", { class: "metrics" }, make("caption", {}, test.caption), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines))),
        ...test.reasons.map((reason) => make("p", { class: "note" }, reason)));
      readout.hidden = false;
      if (focus) { readout.querySelector("h3").focus({ preventScroll: true }); readout.scrollIntoView({ block: "nearest" }); }
    };
    for (const row of rows) {
      row.addEventListener("click", (event) => open(row, event.target.closest("button") !== null || event.isTrusted));
    }
    update();
  }
})();
