// conformance/torch_conformance/report/page_results.js: the results of one run, the filters on them, and the columns that are left.
"use strict";

const ROW_HEIGHT = 22, CELL_WIDTH = 26, NAME_WIDTH = 290, SPARE_ROWS = 4, SPARE_COLUMNS = 6, GROUP_FROM = 3, NOTE_WIDTH = 200;
const FACETS = ["status", "ran", "suite", "dtype", "aspect"];
const RAN = ["native", "fallback", "not native", "not proven"];  // of the cells that pass
const element = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-US");
const percent = (part, whole) => (whole ? (100 * part / whole).toFixed(1) : "0.0") + " %";
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

// A message in one line: its first, without the sample's own lengthy text.
const brief = (text) => text.split("\n")[0].replace(/\d+ of \d+ samples; first: /, "").replace(/\bsample \d+ \w+\(.*?\): (?=\S)/, "");

async function unpack() {
  const bytes = Uint8Array.from(atob(JSON.parse(element("data").textContent)), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// The facets of a cell and their values; a cell is its index into the columns of `data.cells`.
class Results {
  constructor(data) {
    Object.assign(this, data);
    for (const [name, values] of Object.entries(data.cells)) this[name] = values;
    this.count = this.row.length;
    this.first = new Int32Array(this.rows.name.length + 1).fill(this.count);
    for (let cell = this.count - 1; cell >= 0; cell--) this.first[this.row[cell]] = cell;
    this.values = {status: this.statuses.map((s) => s.name), ran: RAN, suite: this.suites, dtype: this.dtypes, aspect: this.aspects};
    this.rank = Object.fromEntries(this.statuses.map((s, index) => [s.name, index]));
    this.suite = this.row.map((row) => this.rows.suite[row]);
    this.ran = this.status.map((status, cell) => (status === this.rank.pass ? this.#ran(cell) : -1));
    this.totals = {};
    for (const facet of FACETS) {
      const totals = this.totals[facet] = new Array(this.values[facet].length).fill(0);
      for (const value of this[facet]) if (value >= 0) totals[value]++;
    }
  }
  #ran(cell) {
    if (this.fallbacks[cell]) return 1;
    return this.native[cell] === 1 ? 0 : this.native[cell] === 2 ? 2 : 3;
  }
  name(row) { return this.strings[this.rows.name[row]]; }
  cellsOf(row) {
    const cells = [];
    for (let cell = this.first[row]; cell < this.count && this.row[cell] === row; cell++) cells.push(cell);
    return cells;
  }
}

// What is chosen: one set of values for each facet (empty: all), the text and the kind of columns. Kept in the address.
class Filter {
  constructor(results) {
    this.results = results;
    const wide = results.dtypes.length * results.aspects.length > 40;
    this.usual = wide ? "dtype" : "both";
    this.read();
  }
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    this.text = given.get("q") || "";
    this.columns = ["dtype", "aspect", "both"].includes(given.get("columns")) ? given.get("columns") : this.usual;
    this.chosen = {};
    for (const facet of FACETS) {
      const values = this.results.values[facet];
      this.chosen[facet] = new Set((given.get(facet) || "").split(",").map((v) => values.indexOf(v)).filter((v) => v >= 0));
    }
  }
  write() {
    const given = new URLSearchParams();
    if (this.text) given.set("q", this.text);
    if (this.columns !== this.usual) given.set("columns", this.columns);
    for (const facet of FACETS) {
      const values = [...this.chosen[facet]].map((v) => this.results.values[facet][v]);
      if (values.length) given.set(facet, values.join(","));
    }
    history.replaceState(null, "", "#" + given);
  }
  // Which cells match: their count, one byte for each cell, and the rows that hold them.
  apply() {
    const r = this.results, text = this.text.trim().toLowerCase();
    const found = text && r.strings.map((string) => string.toLowerCase().includes(text));
    const tests = FACETS.filter((f) => this.chosen[f].size).map((f) => [r[f], r.values[f].map((_, v) => this.chosen[f].has(v))]);
    const match = new Uint8Array(r.count), rows = [];
    let count = 0;
    for (let cell = 0; cell < r.count; cell++) {
      const row = r.row[cell];
      if (found && !found[r.rows.name[row]] && !found[r.message[cell]] && !found[r.reason[cell]]) continue;
      if (!tests.every(([column, wanted]) => wanted[column[cell]])) continue;
      match[cell] = 1;
      count++;
      if (rows[rows.length - 1] !== row) rows.push(row);
    }
    return {match, rows, count};
  }
}

// The columns on show: only those in which a matching cell stands.
function columnsOf(results, kind, match) {
  const {dtypes, aspects, dtype, aspect, count} = results;
  const key = {
    dtype: (cell) => dtype[cell],
    aspect: (cell) => aspect[cell],
    both: (cell) => dtype[cell] * aspects.length + aspect[cell],
  }[kind];
  const used = new Set();
  for (let cell = 0; cell < count; cell++) if (match[cell]) used.add(key(cell));
  const keys = [...used].sort((a, b) => a - b), index = new Map(keys.map((k, i) => [k, i]));
  const list = keys.map((k) => kind === "both"
    ? {group: dtypes[Math.floor(k / aspects.length)], label: aspects[k % aspects.length]}
    : {group: "", label: (kind === "dtype" ? dtypes : aspects)[k]});
  return {list, of: (cell) => index.get(key(cell))};
}
