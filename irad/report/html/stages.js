// The panes beside the source: each shows a stage, and in it what comes from the chosen line.

const STAGE_NAMES = {
  "python": "Python", "numba-ir": "Numba IR", "llvm": "LLVM IR", "prepared": "Prepared LLVM IR", "types": "Types",
  "activity": "Activity", "plan": "Plan", "tape": "Tape layout", "adjoint-python": "Adjoint as Python", "adjoint": "Adjoint, LLVM IR", "optimized": "Optimised",
  "asm": "Assembly", "ptx": "PTX",
};
// What each pane shows first: the first of these that is there and not yet shown.
// The adjoint as Python says most; where it has no Python form, the stages on the way to machine code stand side by side.
const FIRST_CHOICE = HEAD.hasPython ? [["adjoint-python"], ["adjoint", "plan", "optimized"]]
  : HEAD.refusals.length ? [["prepared", "llvm"], ["numba-ir"]]
  : [["prepared", "llvm", "types", "activity"], ["adjoint", "plan", "optimized"], ["asm", "ptx", "optimized"]];

/** A stage, unpacked: its lines and, for each, the source line and the value it belongs to. */
class Stage {
  constructor(language, data) {
    this.language = language;
    this.texts = data.text.split("\n");
    let number = 0;
    this.lines = Int32Array.from(data.line, (difference) => (number += difference));
    this.values = data.value.map((index) => index ? data.values[index - 1] : null);
    this.isNoise = new Uint8Array(this.texts.length);
    data.noise.forEach((start, i) => { if (i % 2 === 0) this.isNoise.fill(1, start, data.noise[i + 1]); });
    this.hasNoise = data.noise.length > 0;
  }

  get lowered() { return (this._lowered ??= this.texts.map((text) => text.toLowerCase())); }
}

const stages = new Map();
function loadStage(name) {
  const [, language] = HEAD.stages.find(([stage]) => stage === name);
  if (!stages.has(name)) stages.set(name, unpack(name).then((data) => new Stage(language, data)));
  return stages.get(name);
}

class StagePane {
  constructor(index, stage, { onLine, onValue }) {
    Object.assign(this, { index, onLine, onValue, stage: null, rows: [], hits: [], line: null, word: "", value: null });
    this.select = make("select", { id: `stage-${index}`, "aria-label": `Stage in pane ${index + 1}` },
      ...HEAD.stages.map(([name]) => make("option", { value: name }, STAGE_NAMES[name])));
    this.count = make("span", { class: "count", role: "status" });
    const button = (sign, label, step) => {
      const element = make("button", { type: "button", class: "step", title: label, "aria-label": label }, sign);
      element.addEventListener("click", () => this.step(step));
      return element;
    };
    this.steps = [button("‹", "Previous place (p)", -1), button("›", "Next place (n)", 1)];
    this.noise = make("input", { type: "checkbox" });
    this.noiseLabel = make("label", { class: "noise", title: "reference counts, debug records and the like" }, this.noise, "noise");
    this.box = make("div", { class: "lines stage", id: `pane-${index}` });
    this.element = make("section", { class: "panel", "aria-label": `Stage ${index + 1}` },
      make("div", { class: "bar" }, this.select, this.count, ...this.steps, this.noiseLabel),
      index === 0 && HEAD.noPython ? make("p", { class: "why-no-python" }, HEAD.noPython) : null, this.box);
    byId("panes").append(this.element);
    this.list = new LineList(this.box, "", {
      drawRow: (row) => this.draw(row),
      onMove: (row, byUser) => { if (byUser) this.onValue(this.stage.values[this.rows[row]], this.stage.lines[this.rows[row]]); },
      onEnter: (row) => this.enter(row),
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "n" || event.key === "p") this.step(event.key === "n" ? 1 : -1);
    });
    this.select.addEventListener("change", () => this.show(this.select.value));
    this.noise.addEventListener("change", () => this.filter());
    this.ready = this.show(stage);
  }

  async show(name) {
    this.name = this.select.value = name;
    const stage = await loadStage(name);
    if (this.name !== name) return; // another was chosen meanwhile
    this.stage = stage;
    this.box.setAttribute("aria-label", `${STAGE_NAMES[name]}; Enter goes to the source`);
    this.box.scrollLeft = 0;
    this.noiseLabel.hidden = !stage.hasNoise;
    this.filter();
    this.toLongestPlace();
  }

  /** Which of the stage's lines are rows. */
  filter() {
    const { texts, isNoise } = this.stage;
    this.rows = [...texts.keys()].filter((i) => this.noise.checked || !isNoise[i]);
    this.list.cursor = -1;
    this.list.reset(this.rows.length, Math.max(0, ...this.rows.map((i) => texts[i].length)) + 10);
    this.findHits();
  }

  setLine(line, { stay = false } = {}) {
    this.line = line;
    this.value = null;
    if (!this.stage) return;
    this.findHits();
    this.list.refresh();
    if (!stay) this.toLongestPlace();
  }

  setValue(value) {
    this.value = value;
    if (!this.stage) return;
    const row = this.rows.findIndex((i) => this.stage.values[i] === value && this.stage.lines[i] === this.line);
    if (row >= 0) this.list.scrollTo(row, "center");
    this.list.refresh();
  }

  setWord(word) {
    this.word = word;
    this.list.refresh();
  }

  findHits() {
    this.hits = this.line === null ? [] : [...this.rows.keys()].filter((row) => this.stage.lines[this.rows[row]] === this.line);
    this.isHit = new Set(this.hits);
    this.list.setTicks(this.hits);
    for (const button of this.steps) button.disabled = this.groups().length < 2;
    this.count.textContent = this.line === null ? "" : this.hits.length ? plural(this.hits.length, "line") : "no code";
  }

  /** Hits that stand together are one place. */
  groups() { return this.hits.filter((row, i) => i === 0 || this.hits[i - 1] !== row - 1); }

  /** Where most lines of the hits stand together is what a reader wants to see first. */
  toLongestPlace() {
    this.list.cursor = -1;
    const starts = this.groups();
    const length = (start) => { let end = start; while (this.isHit.has(end)) end += 1; return end - start; };
    const longest = starts.reduce((best, start) => best === null || length(start) > length(best) ? start : best, null);
    if (longest !== null) this.list.scrollTo(longest, length(longest) * ROW < this.box.clientHeight / 2 ? "center" : "top");
    this.list.draw();
  }

  step(direction) {
    const groups = this.groups();
    if (!groups.length) return;
    const here = this.list.cursor >= 0 ? this.list.cursor : Math.floor((this.box.scrollTop + this.box.clientHeight / 2) / ROW);
    const next = direction > 0 ? groups.find((row) => row > here) ?? groups[0] : groups.findLast((row) => row < here) ?? groups.at(-1);
    this.list.moveTo(next, { block: "center" });
  }

  enter(row) {
    const line = this.stage.lines[this.rows[row]];
    if (line) this.onLine(line, this);
  }

  /** Goes to a line of the stage, as the search does. */
  async goTo(name, index) {
    await this.ready;
    if (this.name !== name || !this.stage) await this.show(name);
    if (this.stage.isNoise[index] && !this.noise.checked) {
      this.noise.checked = true;
      this.filter();
    }
    this.list.moveTo(this.rows.indexOf(index), { block: "center" });
  }

  draw(row) {
    const index = this.rows[row], line = this.stage.lines[index], value = this.stage.values[index];
    const code = make("span", { class: "c-code" }, ...coloured(this.stage.texts[index], this.stage.language));
    if (this.word) markWord(code, this.word);
    const isHit = line !== 0 && line === this.line;
    const classes = `${isHit ? "hit" : ""}${isHit && value && value === this.value ? " value" : ""}`;
    return { nodes: [make("span", { class: "c-origin", title: line ? `from line ${line}` : null }, line ? String(line) : ""), code], classes };
  }
}

function makePanes(callbacks) {
  const left = HEAD.stages.map(([name]) => name);
  const names = [];
  for (const choices of FIRST_CHOICE) {
    const name = choices.find((choice) => left.includes(choice)) ?? left.find((other) => !other.endsWith("python"));
    if (name === undefined) continue;
    left.splice(left.indexOf(name), 1);
    names.push(name);
  }
  return names.map((name, index) => new StagePane(index, name, callbacks));
}
