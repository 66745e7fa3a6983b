// A list of many lines of which only those in view are elements: a page of 100 000 lines opens as fast as one of 100.

const ROW = 20; // height of a line in pixels, as in style.css
const BEYOND = 12; // lines drawn above and below the view

class LineList {
  /**
   * @param box the element that scrolls.
   * @param label what it is, for those who cannot see it.
   * @param drawRow (row) → {nodes, classes, width}: what a row shows.
   * @param onMove (row, isByUser): the cursor has come to a row.
   * @param onEnter (row): Enter, or a click.
   */
  constructor(box, label, { drawRow, onMove = () => {}, onEnter = () => {} }) {
    Object.assign(this, { box, drawRow, onMove, onEnter, count: 0, cursor: -1, ticks: [], drawn: new Map() });
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", label);
    box.tabIndex = 0;
    this.paper = make("div", { class: "paper", role: "presentation" });
    this.ruler = make("canvas", { class: "ruler", "aria-hidden": "true" });
    const frame = make("div", { class: "list-frame" });
    box.replaceWith(frame);
    box.append(this.paper);
    frame.append(box, this.ruler);
    box.addEventListener("scroll", () => this.drawSoon(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => this.click(event));
    this.ruler.addEventListener("click", (event) => this.scrollTo(event.offsetY / this.ruler.clientHeight * this.count, "center"));
    new ResizeObserver(() => { this.drawSoon(); this.drawRuler(); }).observe(box);
  }

  /** New contents: the number of rows, and of letters in the longest. */
  reset(count, letters) {
    this.count = count;
    this.cursor = Math.min(this.cursor, count - 1);
    this.paper.style.height = `${count * ROW}px`;
    this.paper.style.minWidth = `${letters}ch`;
    this.refresh();
  }

  drawSoon() {
    this.pending ??= requestAnimationFrame(() => { this.pending = undefined; this.draw(); });
  }

  /** Draws all rows again, after what they show has changed. */
  refresh() {
    this.drawn.clear();
    this.paper.replaceChildren();
    this.draw();
  }

  /** Draws the rows in view, and that of the cursor, which `aria-activedescendant` has to find. Those there stay. */
  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + BEYOND);
    const isWanted = (i) => i === this.cursor || (i >= first && i < last);
    for (const [i, row] of this.drawn) if (!isWanted(i)) { row.remove(); this.drawn.delete(i); }
    for (let i = first; i < last; i += 1) this.row(i);
    if (this.cursor >= 0) this.row(this.cursor);
    for (const [i, row] of this.drawn) {
      row.classList.toggle("cursor", i === this.cursor);
      row.setAttribute("aria-selected", String(i === this.cursor));
    }
    if (this.cursor >= 0) this.box.setAttribute("aria-activedescendant", this.id(this.cursor));
    else this.box.removeAttribute("aria-activedescendant");
  }

  id(row) { return `${this.box.id}-${row}`; }

  row(i) {
    if (this.drawn.has(i)) return;
    const { nodes, classes, label } = this.drawRow(i);
    const row = make("div", {
      class: `row ${classes}`, role: "option", id: this.id(i), "data-row": i, "aria-posinset": i + 1,
      "aria-setsize": this.count, "aria-label": label,
    }, ...nodes);
    row.style.top = `${i * ROW}px`;
    this.drawn.set(i, row);
    this.paper.append(row);
  }

  moveTo(row, { byUser = false, block = "nearest" } = {}) {
    if (!this.count) return;
    this.cursor = Math.max(0, Math.min(row, this.count - 1));
    this.scrollTo(this.cursor, block);
    this.draw();
    this.onMove(this.cursor, byUser);
  }

  scrollTo(row, block = "nearest") {
    const top = row * ROW, height = this.box.clientHeight;
    const isInView = top >= this.box.scrollTop && top + ROW <= this.box.scrollTop + height;
    if (block === "top") this.box.scrollTop = top - 2 * ROW;
    else if (block === "center" && !isInView) this.box.scrollTop = top - height / 2 + ROW;
    else if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + height) this.box.scrollTop = top + ROW - height;
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.moveTo(this.cursor + steps[event.key], { byUser: true });
    else if (event.key === "Enter" && this.cursor >= 0) this.onEnter(this.cursor);
    else return;
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row || String(getSelection())) return; // whoever marks text to copy it does not want to go elsewhere
    this.moveTo(Number(row.dataset.row), { byUser: true });
    this.onEnter(this.cursor);
  }

  /** Shows at the side where in the whole list some rows are. */
  setTicks(rows) {
    this.ticks = rows;
    this.drawRuler();
  }

  drawRuler() {
    const { ruler, ticks } = this, height = this.box.clientHeight;
    if (!height) return;
    ruler.height = height;
    ruler.width = 8;
    const ink = ruler.getContext("2d");
    ink.fillStyle = getComputedStyle(ruler).color;
    for (const row of ticks) ink.fillRect(1, Math.floor(row / this.count * height), 6, Math.max(2, height / this.count));
  }
}
