// conformance/torch_conformance/report/page.js: the panel, the totals and the filters of the report page; begins when the results are unpacked.

// The panel beside the matrix: cells, reasons, fallbacks or keys.
class Panel {
  constructor(results, grid) {
    Object.assign(this, {results, grid});
    element("close").addEventListener("click", () => this.close());
    element("detail").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }
  open(title, html) {
    element("detail-title").textContent = title;
    element("detail-body").innerHTML = html;
    element("detail").hidden = false;
    element("detail").scrollTop = 0;
    element("detail").focus({preventScroll: true});
  }
  close() {
    element("detail").hidden = true;
    this.grid.focus({preventScroll: true});
  }
  cells(title, cells) {
    const order = [...cells].sort((a, b) => this.results.status[a] - this.results.status[b]);
    this.open(title, order.map((cell) => this.one(cell)).join("") || "<p>No cell here: the entry does not declare this dtype or aspect, or a filter hides it.</p>");
  }
  one(cell) {
    const r = this.results, status = r.statuses[r.status[cell]], fallbacks = r.fallback_sets[r.fallbacks[cell]];
    const facts = [`${number(r.samples[cell])} ${r.samples[cell] === 1 ? "sample" : "samples"}`, `${number(r.ms[cell])} ms`];
    if (r.ran[cell] >= 0) facts.push(RAN[r.ran[cell]]);
    const [message, reason] = [r.strings[r.message[cell]], r.strings[r.reason[cell]]];
    return `<section class="one"><h3><span class="badge s-${status.name}">${status.symbol} ${status.name}</span> ${escaped(r.dtypes[r.dtype[cell]])} ${escaped(r.aspects[r.aspect[cell]])}</h3>`
      + `<p class="quiet">${facts.join(", ")}</p>`
      + (reason ? `<p>${escaped(reason)}</p>` : "") + (message ? `<pre>${escaped(message)}</pre>` : "")
      + (fallbacks.length ? `<p>Ran on the CPU: ${fallbacks.map(([name, calls]) => `<code>${escaped(r.strings[name])}</code> ×${number(calls)}`).join(", ")}</p>` : "")
      + "</section>";
  }
  // Why cells among the matching ones do not pass; numbers are taken out of messages, so that like stands with like.
  reasons(shown) {
    const r = this.results, groups = new Map(), pass = r.rank.pass;
    for (let cell = 0; cell < r.count; cell++) {
      if (!shown.match[cell] || r.status[cell] === pass) continue;
      const text = (r.strings[r.reason[cell]] || brief(r.strings[r.message[cell]])).slice(0, 300);
      const key = r.status[cell] + text.replace(/\d[\d.e+-]*/g, "#");
      const group = groups.get(key) || {status: r.status[cell], text, count: 0};
      group.count++;
      groups.set(key, group);
    }
    const list = [...groups.values()].sort((a, b) => a.status - b.status || b.count - a.count);
    this.open("Reasons of the cells on show", this.table(["cells", "status", "reason or message"], list.map((g) => {
      const status = r.statuses[g.status];
      return [number(g.count), `<span class="badge s-${status.name}">${status.symbol} ${status.name}</span>`, escaped(g.text || "(none given)")];
    })));
  }
  fallbacks(shown) {
    const r = this.results, groups = new Map();
    for (let cell = 0; cell < r.count; cell++) {
      if (!shown.match[cell]) continue;
      for (const [name, calls] of r.fallback_sets[r.fallbacks[cell]]) {
        const group = groups.get(name) || {cells: 0, calls: 0};
        group.cells++;
        group.calls += calls;
        groups.set(name, group);
      }
    }
    const list = [...groups].sort((a, b) => b[1].cells - a[1].cells);
    this.open("Operators that ran on the CPU, in the cells on show", this.table(["cells", "calls", "operator"],
      list.map(([name, g]) => [number(g.cells), number(g.calls), `<code>${escaped(r.strings[name])}</code>`])));
  }
  keys() {
    const r = this.results;
    const symbols = r.statuses.map((s) => [`<span class="badge s-${s.name}">${s.symbol}</span>`, s.name, escaped(s.meaning)]);
    symbols.push([`<span class="badge s-pass away">${r.away}</span>`, "pass, not native", "passes, but ran on the CPU, at least in part"],
      [`<span class="badge s-pass away">${r.partly}</span>`, "pass, partly not native", "several cells pass, and some of them ran on the CPU"]);
    const keys = [["Arrows, Page Up, Page Down, Home, End", "move through the matrix; with Ctrl, Home and End go to its corners"],
      ["Enter", "opens the cell; on an entry, all of its cells"], ["Esc", "closes the panel; leaves the search"],
      ["/", "searches names, messages and reasons"], ["Tab", "goes to the filters and on to the matrix"]];
    this.open("Legend and keys", this.table(["", "status", "meaning"], symbols)
      + "<p>A field of several cells shows the worst of them; a small number counts them.</p>"
      + this.table(["key", "what it does"], keys.map(([key, what]) => [`<kbd>${key}</kbd>`, what])));
  }
  table(heads, rows) {
    if (!rows.length) return "<p>None.</p>";
    const shown = rows.slice(0, 500), more = rows.length - shown.length;
    return `<table><thead><tr>${heads.map((h) => `<th scope="col">${h}</th>`).join("")}</tr></thead><tbody>`
      + shown.map((row) => `<tr>${row.map((value) => `<td>${value}</td>`).join("")}</tr>`).join("") + "</tbody></table>"
      + (more ? `<p>and ${number(more)} more</p>` : "");
  }
}

function summarise(results) {
  const {head, statuses, totals, count} = results, {device} = head;
  const bad = statuses.reduce((sum, s, i) => sum + (s.bad ? totals.status[i] : 0), 0);
  const verdict = element("verdict");
  verdict.textContent = bad ? `✗ ${number(bad)} of ${number(count)} cells are bad` : `✓ all ${number(count)} cells are good`;
  verdict.className = bad ? "bad" : "good";
  const options = Object.entries(device.options || {}).filter(([k, v]) => v && k !== "label").map(([k, v]) => `${k} ${v}`).join(", ");
  const [part, parts] = head.shard;
  const facts = [device.hardware, device.torch ? `torch ${device.torch}` : "", device.package, device.machine, options, head.started.replace("T", " ").replace("Z", " UTC"),
    `${number(Math.round(head.seconds))} s`, parts > 1 ? `shard ${part} of ${parts}` : ""].filter(Boolean);
  element("facts").innerHTML = facts.map((fact) => `<span>${escaped(fact)}</span>`).join("")
    + (head.complete ? "" : '<strong class="bad">! interrupted: not every cell has run</strong>');
  const widths = statuses.map((s, i) => `<i class="s-${s.name}" style="flex:${totals.status[i]}"></i>`);
  element("bar").innerHTML = widths.reverse().join("");
  element("bar").setAttribute("aria-label", statuses.map((s, i) => `${s.name} ${totals.status[i]}`).join(", "));
}

function chips(results, facet, filter, change) {
  const box = element("filter-" + facet), totals = results.totals[facet];
  const whole = facet === "ran" ? results.totals.status[results.rank.pass] : results.count;
  const names = {status: "status", ran: "passes ran", suite: "suite", dtype: "dtype", aspect: "aspect"};
  box.innerHTML = `<b>${names[facet]}</b>` + results.values[facet].map((value, index) => {
    const status = facet === "status" ? results.statuses[index] : null;
    const share = facet === "status" || facet === "ran" ? ` <small>${percent(totals[index], whole)}</small>` : "";
    return `<button type="button" aria-pressed="false" data-value="${escaped(value)}" data-count="${totals[index]}"${totals[index] ? "" : ' class="zero"'}>`
      + (status ? `<span class="badge s-${value}">${status.symbol}</span> ` : "") + `${escaped(value)} <span class="count">${number(totals[index])}</span>${share}</button>`;
  }).join("");
  const buttons = [...box.querySelectorAll("button")];
  box.addEventListener("click", (event) => {
    const index = buttons.indexOf(event.target.closest("button"));
    if (index < 0) return;
    if (!filter.chosen[facet].delete(index)) filter.chosen[facet].add(index);
    change();
  });
  return () => buttons.forEach((b, i) => b.setAttribute("aria-pressed", filter.chosen[facet].has(i)));
}

function start(data) {
  const results = new Results(data), filter = new Filter(results);
  const panel = new Panel(results, element("grid")), matrix = new Matrix(results, (title, cells) => panel.cells(title, cells));
  let shown;
  const change = () => {
    filter.write();
    refresh();
  };
  const marks = FACETS.map((facet) => chips(results, facet, filter, change));
  const refresh = () => {
    shown = filter.apply();
    matrix.show(shown, columnsOf(results, filter.columns, shown.match));
    marks.forEach((mark) => mark());
    element("search").value = filter.text;
    element("columns").value = filter.columns;
    element("shown").textContent = `${number(shown.count)} of ${number(results.count)} cells, ${number(shown.rows.length)} of ${number(results.rows.name.length)} entries`;
  };
  summarise(results);
  element("search").addEventListener("input", () => { filter.text = element("search").value; change(); });
  element("columns").addEventListener("change", () => { filter.columns = element("columns").value; change(); });
  element("reset").addEventListener("click", () => { location.hash = ""; filter.read(); change(); });
  element("show-reasons").addEventListener("click", () => panel.reasons(shown));
  element("show-fallbacks").addEventListener("click", () => panel.fallbacks(shown));
  element("show-keys").addEventListener("click", () => panel.keys());
  element("search").addEventListener("keydown", (event) => {
    if (["Escape", "ArrowDown", "Enter"].includes(event.key)) { event.preventDefault(); element("grid").focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select")) return;
    event.preventDefault();
    element("search").focus();
    element("search").select();
  });
  addEventListener("hashchange", () => { filter.read(); refresh(); });
  refresh();
  if (document.activeElement === document.body) element("grid").focus({preventScroll: true});
}

unpack().then(start).catch((error) => {
  element("verdict").textContent = `The page could not be shown: ${error}. A browser of 2023 or later is needed.`;
  element("verdict").className = "bad";
});
