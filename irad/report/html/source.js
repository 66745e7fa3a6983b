// The Python source with what is known of each line; the line chosen here is shown in all other panels.

const HEAD = JSON.parse(byId("head").textContent);

class Line {
  constructor([number, text, active, constant, perCall, perIteration, rules, share, saved, keeps, reverse]) {
    Object.assign(this, { number, text, active, constant, perCall, perIteration, rules, share, saved, keeps, reverse });
    this.isActive = new Set(active);
    this.isConstant = new Set(constant);
    this.additions = HEAD.additions.filter(([, , , lines]) => lines.includes(number)).map(([memory, how, why]) => ({ memory, how, why }));
    this.refusals = HEAD.refusals.filter(([line]) => line === number).map(([, problem, text]) => ({ problem, text }));
  }

  /** What the columns say, in words. */
  get inWords() {
    const words = this.refusals.map((refusal) => `refused: ${refusal.problem}`);
    if (this.active.length) words.push(`active: ${this.active.join(", ")}`);
    if (this.share) words.push(this.timeInWords);
    if (this.savedInWords) words.push(`saves ${this.savedInWords}`);
    if (this.rules.length) words.push(`rules: ${this.rules.join(", ")}`);
    for (const { memory, how } of this.additions) words.push(`adds to the derivative of ${memory} ${how}`);
    return words.join("; ");
  }

  /** What it saves: in the call that was measured, or in any. */
  get savedInWords() {
    if (this.saved !== null) return this.saved ? `${plural(this.saved, "byte")} in this call` : "";
    const parts = [];
    if (this.perCall) parts.push(`${plural(this.perCall, "byte")} per call`);
    if (this.perIteration) parts.push(`${plural(this.perIteration, "byte")} per iteration`);
    if (this.keeps) parts.push("the shadow of an array");
    return parts.join(", ");
  }

  get timeInWords() {
    const whole = HEAD.seconds === null ? "" : `${seconds(this.share * HEAD.seconds)}, `;
    const split = this.reverse === null ? "" : `: forward ${percent(this.share - this.reverse)}, reverse ${percent(this.reverse)}`;
    return `${whole}${percent(this.share)} of the time${split}`;
  }
}

class SourceView {
  constructor(box, onSelect) {
    this.lines = HEAD.lines.map((entry) => new Line(entry));
    this.rowOf = new Map(this.lines.map((line, row) => [line.number, row]));
    this.hasTime = this.lines.some((line) => line.share !== null);
    this.isMeasured = this.lines.some((line) => line.saved !== null);
    this.mostSaved = Math.max(...this.lines.map((line) => line.saved ?? 0), 1);
    this.mostTime = Math.max(...this.lines.map((line) => line.share ?? 0), 1e-9);
    this.inString = this.stringLines();
    this.word = "";
    byId("source-columns").append(...this.columns());
    box.classList.toggle("timed", this.hasTime);
    this.list = new LineList(box, "Source; arrow keys choose a line", {
      drawRow: (row) => this.draw(row),
      onMove: (row) => onSelect(this.lines[row].number),
    });
    const longest = Math.max(0, ...this.lines.map((line) => line.text.length + line.rules.join(", ").length + 6 + Math.max(0, ...line.refusals.map(({ problem }) => problem.length))));
    this.list.reset(this.lines.length, longest + (this.hasTime ? 34 : 24));
    this.list.setTicks([...this.lines.keys()].filter((row) => this.lines[row].savedInWords));
  }

  columns() {
    const column = (name, title, text) => make("span", { class: `c-${name}`, title }, text);
    return [
      column("line", "line of the file", "line"),
      this.hasTime ? column("time", "time of the gradient: the dark part of the bar is the reverse sweep", "time") : null,
      ...(HEAD.refusals.length ? [] : this.isMeasured ? [column("saved", "bytes saved in the call that was measured", "saved")] : [
        column("call", "bytes saved once per call", "B / call"),
        column("iteration", "bytes saved in each iteration of the innermost loop", "B / iter."),
      ]),
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
    for (const { problem, text } of line.refusals) code.append(make("span", { class: "refused", title: text }, problem));
    if (line.rules.length) code.append(make("span", { class: "rules", title: "rules used on this line" }, line.rules.join(", ")));
    return {
      nodes: [
        make("span", { class: "c-line" }, String(line.number)),
        this.hasTime ? this.timeCell(line) : "",
        ...this.savedCells(line),
        code,
      ],
      classes: row > 0 && this.lines[row - 1].number + 1 < line.number ? "after-gap" : "",
      label: `line ${line.number}: ${line.text.trim()}. ${line.inWords}`,
    };
  }

  savedCells(line) {
    if (HEAD.refusals.length) return [];
    const cell = (name, count, title) => make("span", { class: `c-${name}`, title: count ? title : null }, count ? bytes(count) : "");
    if (!this.isMeasured) {
      return [cell("call", line.perCall, `${plural(line.perCall, "byte")} per call`),
        cell("iteration", line.perIteration, `${plural(line.perIteration, "byte")} per iteration`)];
    }
    const saved = cell("saved", line.saved, line.savedInWords);
    saved.style.setProperty("--share", `${100 * line.saved / this.mostSaved}%`);
    return [saved];
  }

  /** The time that a line takes, and its share as a bar: the reverse sweep's part of it is darker. */
  timeCell(line) {
    const time = HEAD.seconds === null ? percent(line.share ?? 0) : seconds((line.share ?? 0) * HEAD.seconds);
    const cell = make("span", { class: "c-time", title: line.share ? line.timeInWords : null },
      ...(line.share ? [make("span", { class: "c-seconds" }, HEAD.seconds === null ? "" : time), percent(line.share)] : []));
    if (line.share) {
      cell.style.setProperty("--share", `${100 * line.share / this.mostTime}%`);
      cell.style.setProperty("--reverse", `${100 * (line.reverse ?? 0) / this.mostTime}%`);
    }
    return cell;
  }

  /** Shows a line as chosen without being asked to by its own keys. */
  show(number) {
    const row = this.rowOf.get(number);
    if (row !== undefined && row !== this.list.cursor) this.list.moveTo(row, { block: "center" });
  }
}
