// conformance/torch_conformance/report/page_matrix.js: the matrix of entries and columns; only what is in view stands in the document.

class Matrix {
  constructor(results, onOpen) {
    Object.assign(this, {results, onOpen, row: 0, column: 0, pending: false});
    this.grid = element("grid");
    this.grid.addEventListener("scroll", () => this.later());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("click", (event) => this.click(event));
    this.grid.addEventListener("mouseover", ({target}) => { if (target.ariaLabel && target !== this.grid) target.title = target.ariaLabel; });
    new ResizeObserver(() => this.later()).observe(this.grid);
  }
  show(shown, columns) {
    Object.assign(this, {shown, columns});
    this.row = Math.min(this.row, Math.max(0, shown.rows.length - 1));
    this.column = Math.min(this.column, columns.list.length);
    this.width = NAME_WIDTH + columns.list.length * CELL_WIDTH;
    element("none").hidden = shown.rows.length > 0;
    element("body").style.height = shown.rows.length * ROW_HEIGHT + "px";
    for (const part of ["head", "body"]) element(part).style.minWidth = this.width + "px";
    this.grid.setAttribute("aria-rowcount", shown.rows.length + 1);
    this.grid.setAttribute("aria-colcount", columns.list.length + 1);
    this.grid.scrollTop = 0;
    this.drawn = null;
    this.heading();
    this.draw();
  }
  heading() {
    const {list} = this.columns, groups = new Map();
    list.forEach((c, i) => groups.has(c.group) ? groups.get(c.group).push(i) : groups.set(c.group, [i]));
    let html = '<div class="corner" role="columnheader" aria-colindex="1">entry</div>';
    list.forEach((c, i) => {
      const members = groups.get(c.group), alone = c.group && members.length < GROUP_FROM;
      const edge = c.group && members[0] === i ? " edge" : "";
      html += `<div class="column${edge}" role="columnheader" aria-colindex="${i + 2}"><span>${escaped(alone ? c.group + " " + c.label : c.label)}</span></div>`;
    });
    for (const [group, members] of groups) {
      if (!group || members.length < GROUP_FROM) continue;
      const left = NAME_WIDTH + members[0] * CELL_WIDTH, width = members.length * CELL_WIDTH;
      html += `<div class="group" aria-hidden="true" style="left:${left}px;width:${width}px">${escaped(group)}</div>`;
    }
    element("head").classList.toggle("grouped", [...groups].some(([g, m]) => g && m.length >= GROUP_FROM));
    element("head").innerHTML = html;
  }
  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }
  // Only what is in view, and a little more, stands in the document; rows that stay in view stay there.
  draw() {
    if (!this.shown) return;
    const {scrollTop, clientHeight, scrollLeft, clientWidth} = this.grid, end = this.columns.list.length;
    const from = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const to = Math.min(this.shown.rows.length, Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + SPARE_ROWS);
    const block = (x) => Math.floor(x / CELL_WIDTH / SPARE_COLUMNS);
    const left = Math.max(0, block(scrollLeft) * SPARE_COLUMNS);
    const right = Math.min(end, (block(scrollLeft + clientWidth - NAME_WIDTH) + 1) * SPARE_COLUMNS);
    const old = this.drawn, body = element("body");
    const lines = (a, b) => Array.from({length: Math.max(0, b - a)}, (_, i) => this.line(a + i, left, right)).join("");
    if (!old || old.left !== left || old.right !== right || old.width !== clientWidth || from >= old.to || to <= old.from) {
      body.innerHTML = lines(from, to);
    } else {
      for (let at = old.from; at < from; at++) body.firstChild.remove();
      for (let at = old.to; at > to; at--) body.lastChild.remove();
      body.insertAdjacentHTML("afterbegin", lines(from, old.from));
      body.insertAdjacentHTML("beforeend", lines(old.to, to));
    }
    this.drawn = {from, to, left, right, width: clientWidth};
    this.mark();
  }
  line(at, left, right) {
    const row = this.shown.rows[at], buckets = this.buckets(row), name = escaped(this.results.name(row)), {list} = this.columns;
    let html = `<div role="row" class="row" aria-rowindex="${at + 2}" style="top:${at * ROW_HEIGHT}px">`
      + `<div role="rowheader" class="name" aria-colindex="1" title="${name}"><i>${this.results.suites[this.results.rows.suite[row]]}</i>${name}</div>`;
    for (let column = left; column < right; column++) {
      const edge = list[column].group !== (list[column - 1]?.group ?? "") ? " edge" : "";
      const place = `role="gridcell" aria-colindex="${column + 2}" style="left:${NAME_WIDTH + column * CELL_WIDTH}px"`;
      html += buckets[column] ? this.cell(column, buckets[column], place, edge) : `<div class="cell${edge}" aria-label="no cell" ${place}></div>`;
    }
    return html + this.note(buckets) + "</div>";
  }
  // Beside the cells, where there is room: why the worst of the row does not pass.
  note(buckets) {
    if (this.width + NOTE_WIDTH > this.grid.clientWidth) return "";
    const r = this.results, worst = buckets.flat().filter((c) => r.status[c] < r.rank.pass).sort((a, b) => r.status[a] - r.status[b])[0];
    if (worst === undefined) return "";
    const text = brief(r.strings[r.message[worst]]) || r.strings[r.reason[worst]];
    return `<div class="note" role="presentation" aria-hidden="true" style="left:${this.width + 10}px">${escaped(text)}</div>`;
  }
  buckets(row) {
    const buckets = [];
    for (const cell of this.results.cellsOf(row)) {
      if (this.shown.match[cell]) (buckets[this.columns.of(cell)] ||= []).push(cell);
    }
    return buckets;
  }
  cell(column, cells, place, edge) {
    const r = this.results, worst = Math.min(...cells.map((cell) => r.status[cell])), status = r.statuses[worst];
    const same = cells.filter((cell) => r.status[cell] === worst), {group, label} = this.columns.list[column];
    const away = same.filter((cell) => r.ran[cell] === 1 || r.ran[cell] === 2).length, partly = away && away < same.length;
    const symbol = away ? (partly ? r.partly : r.away) : status.symbol;
    const count = status.bad && same.length > 1 ? `<sub>${Math.min(same.length, 99)}</sub>` : "";
    const words = `${group} ${label}: ${status.name}`.trim() + (away ? `, ${partly ? "partly " : ""}not native` : "")
      + (cells.length > 1 ? `, ${same.length} of ${cells.length} cells` : "");
    return `<div class="cell s-${status.name}${away ? " away" : ""}${edge}" aria-label="${escaped(words)}" ${place}>${symbol}${count}</div>`;
  }
  mark() {
    const old = element("active");
    if (old) { old.classList.remove("active"); old.removeAttribute("id"); }
    const active = document.querySelector(`[aria-rowindex="${this.row + 2}"] > [aria-colindex="${this.column + 1}"]`);
    if (!active) return this.grid.removeAttribute("aria-activedescendant");
    active.id = "active";
    active.classList.add("active");
    this.grid.setAttribute("aria-activedescendant", "active");
  }
  move(row, column) {
    this.row = Math.max(0, Math.min(row, this.shown.rows.length - 1));
    this.column = Math.max(0, Math.min(column, this.columns.list.length));
    const grid = this.grid, head = element("head").offsetHeight, top = this.row * ROW_HEIGHT;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + ROW_HEIGHT + head > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + ROW_HEIGHT + head - grid.clientHeight;
    const left = (this.column - 1) * CELL_WIDTH;
    if (this.column && left < grid.scrollLeft) grid.scrollLeft = left;
    else if (left + CELL_WIDTH + NAME_WIDTH > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = left + CELL_WIDTH + NAME_WIDTH - grid.clientWidth;
    this.draw();
  }
  key(event) {
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW_HEIGHT) - 6), {row, column} = this;
    const end = this.columns.list.length, last = this.shown.rows.length - 1;
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - page, column], PageDown: [row + page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0], End: event.ctrlKey ? [last, end] : [row, end],
    };
    if (event.altKey || event.metaKey) return;
    if (moves[event.key]) this.move(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.open();
    else return;
    event.preventDefault();
  }
  click(event) {
    const hit = event.target.closest("#body [aria-colindex]");
    if (!hit) return;
    this.move(hit.parentNode.ariaRowIndex - 2, hit.ariaColIndex - 1);
    this.open();
  }
  open() {
    const row = this.shown.rows[this.row];
    if (row === undefined) return;
    const column = this.columns.list[this.column - 1];
    const cells = this.column ? this.buckets(row)[this.column - 1] || [] : this.results.cellsOf(row);
    this.onOpen(this.results.name(row) + (column ? `, ${column.group} ${column.label}`.replace("  ", " ") : ""), cells);
  }
}
