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

  /* Light or dark: as the system is set, until the reader chooses. */
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

  /* Charts: the visible ones first, then the others, without waiting for a scroll. */
  const specs = json("charts");
  const config = json("chart-config");
  const nothing = () => Promise.reject(new Error("charts load nothing"));
  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, logLevel: 1 /* errors */, config, defaultStyle: false,
    tooltip: { theme: "foretest", disableDefaultStyle: true },
    loader: { load: nothing, sanitize: nothing, http: nothing, file: nothing },
  };
  /* A square chart stays square at any width. */
  function fitted(spec, room) {
    if (typeof spec.width !== "number") return room < 520 ? narrowed(spec) : spec;
    const width = Math.min(room - 90, 640);
    return { ...(room < 520 ? narrowed(spec) : spec), width, height: (spec.height / spec.width) * width };
  }
  /* On a narrow screen: legends below each other, long titles on two lines, every other power of ten. */
  function narrowed(spec) {
    const broken = (text) => {
      const words = text.split(" ");
      const half = Math.ceil(words.length / 2);
      return [words.slice(0, half).join(" "), words.slice(half).join(" ")];
    };
    const walk = (value, name) => {
      if (Array.isArray(value)) return value.length > 6 && value[0].exponent !== undefined ? value.filter((_, k) => k % 2 === 0) : value.map((item) => walk(item));
      if (value === null || typeof value !== "object") return value;
      const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, key)]));
      if (name === "axis" && typeof copy.title === "string" && copy.title.length > 34) copy.title = broken(copy.title);
      if (name === "legend" && copy.direction === "horizontal") Object.assign(copy, { direction: "vertical", columns: 1 });
      return copy;
    };
    return walk(spec);
  }
  async function draw(place) {
    try {
      const words = place.getAttribute("aria-label");
      await vegaEmbed(place, fitted(specs[place.dataset.chart], place.clientWidth), options);
      /* screen readers read one description for the whole picture, not each of its parts */
      for (const [name, value] of [["role", "img"], ["aria-label", words]]) place.setAttribute(name, value);
      place.removeAttribute("aria-roledescription");
      for (const part of all("svg", place)) part.setAttribute("aria-hidden", "true");
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

  /* Tables that sort: by the number of a cell, else by its text; cells without a number go last. */
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if ("value" in cell.dataset) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    const text = cell.textContent.trim();
    const plain = text.replace(/−/g, "-").replace(/[,\s%]/g, "");
    return plain === "–" || text === "" ? null : plain !== "" && !Number.isNaN(Number(plain)) ? Number(plain) : text.toLowerCase();
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  function sort(button, down) {
    const header = button.closest("th");
    const body = header.closest("table").tBodies[0];
    const column = header.cellIndex;
    for (const other of all("th[aria-sort]", header.parentElement)) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down ? compare(b, a) : compare(a, b));
    body.append(...rows.map(([, row]) => row));
  }
  all(".sort").forEach((button) => button.addEventListener("click", () => sort(button, button.closest("th").getAttribute("aria-sort") === "ascending")));

  /* Escape hides tooltips until the next hover or focus. */
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") document.body.classList.add("quieted"); });
  for (const tile of all(".tile")) {
    for (const kind of ["mouseenter", "focus"]) {
      tile.addEventListener(kind, () => {
        document.body.classList.remove("quieted");
        tile.classList.toggle("at-the-edge", tile.getBoundingClientRect().left + 330 > innerWidth);
      });
    }
  }

  /* Downloads: the text that is in the page. */
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

  /* In print everything is open. */
  addEventListener("beforeprint", () => {
    for (const part of all("details:not([open])")) if (!part.closest("footer") && !part.matches(".at-length")) { part.open = true; part.dataset.opened = "for print"; }
  });
  addEventListener("afterprint", () => { for (const part of all("details[data-opened]")) { part.open = false; delete part.dataset.opened; } });

  /* Commands to copy. */
  for (const button of all(".copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  /* Numbers in the format of the rest of the page. */
  const pct = (value) => {
    if (value === null) return "–";
    const size = Math.abs(100 * value);
    const digits = size >= 100 ? 0 : size >= 1 || size === 0 ? 1 : size >= 0.01 ? 2 : 3;
    const shown = size.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return `${value < 0 ? "−" : "+"}${shown}\u00a0%`;
  };
  const span = (lower, upper) => lower === null ? "no interval" : `${pct(lower)} to ${pct(upper)}`;
  const chip = (verdict, sign) => make("span", { class: `chip ${verdict}` }, make("i", { "aria-hidden": "true" }, sign), verdict);

  /* The tables of a board: search by name, filters by what a row says of itself, and where headings are out of sight a choice of order. */
  for (const finder of all(".finder")) {
    const rows = all("tbody tr", finder);
    const names = rows.map((row) => row.cells[0].textContent.toLowerCase());
    const search = finder.querySelector("input[type=search]");
    const filters = all("[data-filter]", finder);
    const order = finder.querySelector("[data-sort]");
    const summary = finder.querySelector(".shown");
    const filter = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
      const asked = filters.filter((input) => input.value !== "").map((input) => [input.selectedOptions[0].dataset.by ?? input.dataset.filter, input.value]);
      let shown = 0;
      rows.forEach((row, number) => {
        row.hidden = !(wanted.every((word) => names[number].includes(word)) && asked.every(([name, value]) => row.dataset[name] === value));
        shown += row.hidden ? 0 : 1;
      });
      finder.classList.toggle("by-first-goal", asked.some(([name]) => name === "leads"));
      summary.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${finder.dataset.rows}`;
    };
    const buttons = all(".sort", finder);
    buttons.forEach((button, number) => {
      for (const [value, arrow] of [["up", "\u2191"], ["down", "\u2193"]]) order.append(make("option", { value: `${number} ${value}` }, `${button.textContent} ${arrow}`));
    });
    order.addEventListener("change", () => {
      const [number, way] = order.value.split(" ");
      if (way !== undefined) { sort(buttons[Number(number)], way === "down"); return; }
      for (const button of buttons) button.closest("th").setAttribute("aria-sort", "none");
      rows[0].parentElement.append(...rows);
    });
    search.addEventListener("input", filter);
    filters.forEach((input) => input.addEventListener("change", filter));
    finder.querySelector(".tools").hidden = false;
    filter();
  }

  /* The tests of a history: search, filter, choice of estimator, results of one test. */
  for (const list of all(".test-list")) {
    const data = json(list.dataset.tests);
    const estimate = (numbers) => numbers && { value: numbers[0], lower: numbers[1], upper: numbers[2], verdict: data.verdicts[numbers[3]], positives: numbers[4], from: numbers[5], to: numbers[6], word: data.words[numbers[7]] };
    const rank = (e) => data.decisions[e.verdict];
    const callOf = (offline, online) => !offline ? "" : ["too-low", "right-call", "too-high"][1 + Math.sign(rank(offline) - rank(online))];
    const callChip = (call) => call === "" ? "–" : make("span", { class: `chip ${call}` }, data.calls[call]);
    const rows = all("tbody tr[data-test]", list);
    const search = list.querySelector("input[type=search]");
    const summary = list.querySelector(".shown");
    const readout = list.querySelector(".readout");
    const estimator = list.querySelector("[data-estimator]");

    const filter = () => {
      const wanted = search.value.trim().toLowerCase();
      const asked = all("[data-filter]", list).filter((input) => input.value !== "");
      let shown = 0;
      for (const row of rows) {
        const fits = row.cells[0].textContent.toLowerCase().includes(wanted) && asked.every((input) => row.dataset[input.dataset.filter] === input.value);
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      summary.textContent = `${shown} of ${rows.length} tests`;
    };
    const choose = () => {
      for (const row of rows) {
        const test = data.tests[Number(row.dataset.test)];
        const offline = estimate(test.offline[Number(estimator.value)]);
        const call = callOf(offline, estimate(test.online));
        row.dataset.call = call;
        const [, , uplift, range, word, , outcome] = row.cells;
        uplift.textContent = offline ? pct(offline.value) : "–";
        uplift.dataset.value = offline && offline.value !== null ? offline.value : "";
        range.textContent = offline ? span(offline.from, offline.to) : "–";
        word.replaceChildren(offline ? chip(offline.word, data.signs[offline.word]) : "–");
        outcome.replaceChildren(callChip(call));
      }
      filter();
    };
    search.addEventListener("input", filter);
    all("[data-filter]", list).forEach((input) => input.addEventListener("change", filter));
    estimator.addEventListener("change", choose);

    const open = (row) => {
      const test = data.tests[Number(row.dataset.test)];
      const online = estimate(test.online);
      const lines = [["online", online, true], ...data.estimators.map((label, k) => [label, estimate(test.offline[k]), false])].filter(([, e]) => e);
      const ends = lines.filter(([, e]) => e.from !== null && e.verdict !== "insufficient").flatMap(([, e]) => [e.from, e.to]);
      const low = Math.min(0, ...ends), high = Math.max(0, ...ends), margin = 0.05 * (high - low) || 0.01;
      const at = (value) => `${(100 * (Math.min(Math.max(value, low - margin), high + margin) - low + margin)) / (high - low + 2 * margin)}%`;
      const bar = (e) => {
        if (e.from === null) return "no interval";
        const wider = e.lower !== null && (e.from !== e.lower || e.to !== e.upper);
        const drawn = make("div", { class: `bar ${e.word}`, "aria-hidden": "true" }, make("b"), ...(wider ? [make("b", { class: "inner" })] : []), make("i"));
        const width = (from, to) => `calc(${at(to)} - ${at(from)})`;
        const places = [["zero", at(0)], ["begin", at(e.from)], ["width", width(e.from, e.to)], ["point", at(e.value)]];
        if (wider) places.push(["inner", at(e.lower)], ["inner-width", width(e.lower, e.upper)]);
        for (const [name, value] of places) drawn.style.setProperty(`--${name}`, value);
        return drawn;
      };
      const head = ["", "uplift", "range", "word", "", "noise only", "verdict", "effective positives", "against online"];
      const body = lines.map(([label, e, first]) => make("tr", first ? { class: "strong" } : {},
        make("th", { scope: "row", class: "name" }, label), make("td", { class: "right" }, pct(e.value)),
        make("td", { class: "right" }, span(e.from, e.to)), make("td", {}, chip(e.word, data.signs[e.word])),
        make("td", { class: "interval" }, bar(e)), make("td", { class: "right" }, span(e.lower, e.upper)), make("td", {}, e.verdict),
        make("td", { class: "right" }, e.positives === null ? "–" : Math.round(e.positives).toLocaleString("en")),
        make("td", {}, first ? "" : callChip(callOf(e, online)))));
      for (const other of rows) other.classList.toggle("chosen", other === row);
      const title = make("h3", { tabindex: "-1" }, test.name);
      readout.replaceChildren(title,
        make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Results of ${test.name}` },
          make("table", { class: "metrics" }, make("caption", {}, data.caption),
            make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...body))),
        ...test.reasons.map((reason) => make("p", { class: "note" }, reason)));
      readout.hidden = false;
      title.focus({ preventScroll: true });
      readout.scrollIntoView({ block: "nearest", behavior: "smooth" });
    };
    for (const row of rows) row.addEventListener("click", () => open(row));
    choose();
  }
})();
