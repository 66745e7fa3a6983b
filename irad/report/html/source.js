// The Python source with what is known of each line; the line chosen here is shown in all other panels.

const HEAD = JSON.parse(byId("head").textContent);

class Line {
  constructor([number, text, active, constant, perCall, perIteration, rules, share]) {
    Object.assign(this, { number, text, active, constant, perCall, perIteration, rules, share });
    this.isActive = new Set(active);
    this.isConstant = new Set(constant);
  }

  /** What the columns say, in words. */
  get inWords() {
    const words = [];
    if (this.active.length) words.push(`active: ${this.active.join(", ")}`);
    if (this.share) words.push(`${percent(this.share)} of the time`);
    if (this.perCall) words.push(`saves ${plural(this.perCall, "byte")} per call`);
    if (this.perIteration) words.push(`saves ${plural(this.perIteration, "byte")} per iteration`);
    if (this.rules.length) words.push(`rules: ${this.rules.join(", ")}`);
    return words.join("; ");
  }
}

class SourceView {
  constructor(box, onSelect) {
    this.lines = HEAD.lines.map((entry) => new Line(entry));
    this.rowOf = new Map(this.lines.map((line, row) => [line.number, row]));
    this.hasTime = this.lines.some((line) => line.share !== null);
    this.mostTime = Math.max(...this.lines.map((line) => line.share ?? 0), 1e-9);
    this.inString = this.stringLines();
    this.word = "";
    byId("source-columns").append(...this.columns());
    box.classList.toggle("timed", this.hasTime);
    this.list = new LineList(box, "Source; arrow keys choose a line", {
      drawRow: (row) => this.draw(row),
      onMove: (row) => onSelect(this.lines[row].number),
    });
    const longest = Math.max(0, ...this.lines.map((line) => line.text.length + line.rules.join(", ").length + 6));
    this.list.reset(this.lines.length, longest + (this.hasTime ? 34 : 26));
    this.list.setTicks([...this.lines.keys()].filter((row) => this.lines[row].perCall || this.lines[row].perIteration));
  }

  columns() {
    const column = (name, title, text) => make("span", { class: `c-${name}`, title }, text);
    return [
      column("line", "line of the file", "line"),
      this.hasTime ? column("time", "share of the time of the gradient", "time") : null,
      column("call", "bytes saved once per call", "B / call"),
      column("iteration", "bytes saved in each iteration of the innermost loop", "B / iter."),
    ].filter(Boolean);
  }

  /** Rows that begin within a string of three quotes. */
  stringLines() {
    const rows = new Set();
    let open = "";
    this.lines.forEach((line, row) => {
      if (open) rows.add(row);
      for (const [quote] of line.text.matchAll(/"""|'''/g)) open = open === "" ? quote : open === quote ? "" : open;
    });
    return rows;
  }

  draw(row) {
    const line = this.lines[row];
    const nameClass = (name) => line.isActive.has(name) ? "var active" : line.isConstant.has(name) ? "var constant" : "";
    const code = make("span", { class: "c-code" },
      ...(this.inString.has(row) ? [make("span", { class: "t-string" }, line.text)] : coloured(line.text, "python", nameClass)));
    if (this.word) markWord(code, this.word);
    if (line.rules.length) code.append(make("span", { class: "rules", title: "rules used on this line" }, line.rules.join(", ")));
    return {
      nodes: [
        make("span", { class: "c-line" }, String(line.number)),
        this.hasTime ? this.timeCell(line) : "",
        make("span", { class: "c-call", title: line.perCall ? `${plural(line.perCall, "byte")} per call` : null }, line.perCall ? bytes(line.perCall) : ""),
        make("span", { class: "c-iteration", title: line.perIteration ? `${plural(line.perIteration, "byte")} per iteration` : null }, line.perIteration ? bytes(line.perIteration) : ""),
        code,
      ],
      classes: row > 0 && this.lines[row - 1].number + 1 < line.number ? "after-gap" : "",
      label: `line ${line.number}: ${line.text.trim()}. ${line.inWords}`,
    };
  }

  timeCell(line) {
    const cell = make("span", { class: "c-time" }, line.share ? percent(line.share) : "");
    if (line.share) cell.style.setProperty("--share", `${100 * line.share / this.mostTime}%`);
    return cell;
  }

  /** Shows a line as chosen without being asked to by its own keys. */
  show(number) {
    const row = this.rowOf.get(number);
    if (row !== undefined && row !== this.list.cursor) this.list.moveTo(row, { block: "center" });
  }
}
