// Search in the source and all stages; the browser's own search sees only the lines in view.

const MOST_RESULTS = 40; // of each stage in the list; all are counted

class Search {
  /** @param onWord (word): what to mark. @param onPick ({stage, index, line}): a result was chosen; stage is null for the source. */
  constructor(input, list, source, { onWord, onPick }) {
    Object.assign(this, { input, list, source, onWord, onPick, results: [], at: -1 });
    input.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.run(), 100); });
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("focus", () => this.open(this.results.length > 0));
    input.addEventListener("blur", () => this.open(false));
    list.addEventListener("mousedown", (event) => { // before the input loses the focus
      event.preventDefault();
      const item = event.target.closest("[data-result]");
      if (item) this.pick(Number(item.dataset.result));
    });
  }

  async run() {
    const word = this.input.value.trim().toLowerCase();
    this.word = word;
    if (word.length < 2) {
      this.results = [];
      this.onWord("");
      this.open(false);
      return;
    }
    const found = [{ name: "Source", all: this.inSource(word) }];
    for (const [stage] of HEAD.stages) if (stage !== "python") found.push({ name: STAGE_NAMES[stage], all: await this.inStage(stage, word) });
    if (this.word !== word) return;
    this.onWord(word);
    this.draw(found.filter(({ all }) => all.length));
  }

  inSource(word) {
    return this.source.lines.filter((line) => line.text.toLowerCase().includes(word))
      .map((line) => ({ stage: null, index: line.number, line: line.number, text: line.text }));
  }

  async inStage(stage, word) {
    const { lowered, texts, lines } = await loadStage(stage);
    const found = [];
    lowered.forEach((text, index) => { if (text.includes(word)) found.push({ stage, index, line: lines[index], text: texts[index] }); });
    return found;
  }

  draw(found) {
    this.results = [];
    this.at = -1;
    const items = [];
    for (const { name, all } of found) {
      items.push(make("li", { class: "group", role: "presentation" }, name, make("span", { class: "count" }, all.length.toLocaleString("en"))));
      for (const result of all.slice(0, MOST_RESULTS)) {
        const text = make("code", {}, result.text.trim().slice(0, 200));
        markWord(text, this.word);
        items.push(make("li", { role: "option", id: `result-${this.results.length}`, "data-result": this.results.length, "aria-selected": "false" },
          make("span", { class: "c-line" }, String(result.stage ? result.index + 1 : result.line)), text));
        this.results.push(result);
      }
    }
    if (!items.length) items.push(make("li", { class: "group", role: "presentation" }, "Nothing found"));
    this.list.replaceChildren(...items);
    this.open(true);
    const total = found.reduce((sum, { all }) => sum + all.length, 0);
    byId("status").textContent = total ? `${plural(total, "place")} with “${this.word}”` : `Nothing found for “${this.word}”`;
  }

  open(isOpen) {
    this.list.hidden = !isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { this.open(false); if (!this.input.value) this.input.blur(); return; }
    if (step && this.results.length) {
      this.open(true);
      this.mark((this.at + step + this.results.length) % this.results.length);
    } else if (event.key === "Enter" && this.results.length) this.pick(Math.max(this.at, 0));
    else return;
    event.preventDefault();
  }

  mark(at) {
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    this.at = at;
    const item = byId(`result-${at}`);
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", item.id);
  }

  pick(at) {
    this.mark(at);
    this.open(false);
    this.onPick(this.results[at]);
  }
}
