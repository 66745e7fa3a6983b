// The panels below the source: the chosen line, the tape, the call graph.

const MOST_ROWS = 200; // of a table, until all are asked for

/** A reason without the word that stands beside it as a chip. */
const reason = (text) => text.replace(/^(?:active|constant|saved): /, "");

const chip = (kind, text) => make("span", { class: `chip ${kind}` }, text);

/** A table of which the first rows are drawn, and the others when they are asked for. */
function longTable(head, rows, drawRow, attributes = {}) {
  const body = make("tbody", {}, ...rows.slice(0, MOST_ROWS).map(drawRow));
  const table = make("table", attributes, head, body);
  const box = make("div", {}, table);
  if (rows.length > MOST_ROWS) {
    const more = make("button", { type: "button", class: "more" }, `Show all ${rows.length.toLocaleString("en")}`);
    more.addEventListener("click", () => { more.remove(); body.append(...rows.slice(MOST_ROWS).map(drawRow)); });
    box.append(more);
  }
  return box;
}

/** Up and down go from row to row, Enter picks; one row is in the tab order. */
function rovingRows(box, onPick) {
  box.addEventListener("keydown", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || event.target.closest("button")) return;
    if (event.key === "Enter" || event.key === " ") onPick(row);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      if (next) { row.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    } else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !String(getSelection())) onPick(row);
  });
}

class LineFacts {
  constructor(box, onValue) {
    this.box = box;
    this.line = null;
    rovingRows(box, (row) => { this.mark(row.dataset.value); onValue(row.dataset.value); });
  }

  async show(line) {
    this.line = line;
    if (HEAD.refusals.length) { this.showRefused(line); return; }
    const { values, strings } = await unpack("values");
    if (this.line !== line) return;
    const mine = values.filter((entry) => entry[3] === line.number).sort((a, b) => this.weight(b, strings) - this.weight(a, strings));
    this.box.replaceChildren(...this.heading(line), mine.length ? this.table(mine, strings) : make("p", { class: "none" }, "No value of the compiled program comes from this line."));
    this.box.scrollTop = 0;
  }

  /** Of a function that is refused nothing is known but where. */
  showRefused(line) {
    const texts = line.refusals.map(({ text }) => make("pre", { class: "refusal" }, text));
    const none = make("p", { class: "none" }, "Nothing is refused here. The function is not differentiated, so nothing else is known of its lines.");
    this.box.replaceChildren(this.title(line), ...(texts.length ? texts : [none]));
    this.box.scrollTop = 0;
  }

  title(line) { return make("h3", {}, make("span", { class: "line-number" }, `Line ${line.number}`), make("code", {}, line.text.trim())); }

  /** What is on the tape comes first, then what has a derivative, then addresses and integers. */
  weight([, , type, , flags], strings) {
    return 4 * (flags >> 1 & 1) + 2 * (flags & 1) - (strings[type] === "ptr" ? 1 : 0);
  }

  heading(line) {
    const fact = (name, ...nodes) => make("div", {}, make("dt", {}, name), make("dd", {}, ...nodes));
    const variables = [...line.active.map((name) => chip("active", name)), ...line.constant.map((name) => chip("constant", name))];
    return [
      this.title(line),
      make("dl", { class: "line-facts" },
        variables.length ? fact("variables", ...variables) : null,
        fact("saved", line.savedInWords || "nothing"),
        line.rules.length ? fact("rules", ...line.rules.map((rule) => chip("rule", rule))) : null,
        ...line.additions.map(({ memory, how, why }) => fact("adds", `to the derivative of ${memory} ${how}, since ${why}`)),
        line.share !== null ? fact("time", line.share ? line.timeInWords : "none that was seen") : null),
    ];
  }

  table(rows, strings) {
    const head = make("thead", {}, make("tr", {}, ...["value", "operation", "activity", "plan"].map((name) => make("th", { scope: "col" }, name))));
    const draw = ([fn, name, type, , flags, source, operation, activity, plan, memory, rule, origin], i) => make("tr", { "data-value": name, tabindex: i ? "-1" : "0" },
      make("td", { title: HEAD.functions[fn].name }, strings[source].replace(/ on line \d+$/, "") || "store", make("small", { class: "mono" }, `${name} ${strings[type]}`)),
      make("td", {}, strings[operation], strings[rule] ? make("small", {}, `rule ${strings[rule]}${strings[origin] ? `, ${strings[origin]}` : ""}`) : null),
      make("td", {}, chip(flags & 1 ? "active" : "constant", flags & 1 ? "active" : "constant"), make("small", {}, reason(strings[activity])), strings[memory] ? make("small", {}, strings[memory]) : null),
      make("td", {}, flags & 2 ? chip("saved", "saved") : null, make("small", {}, reason(strings[plan]))));
    return longTable(head, rows, draw, { class: "values", "aria-label": "Values of this line" });
  }

  /** Shows which value the panes are about. */
  mark(value) {
    if (!value) return;
    for (const row of this.box.querySelectorAll("tbody tr")) {
      const is = row.dataset.value === value;
      row.classList.toggle("chosen", is);
      if (is) row.scrollIntoView({ block: "nearest" });
    }
  }
}

/** How often a slot is filled; loops one in the other, outermost first. */
function often({ storage, loops }) {
  if (!loops.length) return storage === "frame" || storage === "kept" ? "per call" : "per chunk";
  return `per iteration of ${loops.length > 1 ? "loops" : "the loop"} ${loops.join(" › ")}`;
}

class TapeTable {
  constructor(box, onPick) {
    this.box = box;
    const text = (number) => HEAD.strings[number];
    this.rows = HEAD.tape.map(([fn, value, name, size, storage, loops, line, place, why, slots, total]) => ({
      fn: HEAD.functions[fn].name, value, name: text(name), size, storage: text(storage), loops, line, place: text(place), why: text(why), slots, total,
    }));
    this.isMeasured = this.rows.length > 0 && this.rows.every((row) => row.total !== null);
    if (this.isMeasured) this.rows = this.rows.filter((row) => row.total > 0);
    this.columns = [
      ...(this.isMeasured ? [["total", "bytes", (row) => row.total, "number"], ["slots", "slots", (row) => row.slots, "number"]] : []),
      ["size", this.isMeasured ? "one slot" : "bytes", (row) => row.size ?? Infinity, "number"],
      ...(this.isMeasured ? [] : [["often", "how often", (row) => row.loops.length, ""]]),
      ["line", "line", (row) => row.line ?? Infinity, "number"],
      ["name", "what", (row) => row.name, ""],
      ...(HEAD.functions.length > 1 ? [["fn", "function", (row) => row.fn, ""]] : []),
      ["why", "why it is saved", (row) => row.why, ""],
    ];
    this.order = { key: this.columns[0][0], isDown: true };
    rovingRows(box, (row) => onPick(this.rows[row.dataset.entry]));
    this.draw();
  }

  draw() {
    const { key, isDown } = this.order;
    const of = this.columns.find(([name]) => name === key)[2];
    const compare = (a, b) => { const x = of(this.rows[a]), y = of(this.rows[b]); return (x < y ? -1 : x > y ? 1 : 0) * (isDown ? -1 : 1) || a - b; };
    const order = [...this.rows.keys()].sort(compare);
    const head = make("thead", {}, make("tr", {}, ...this.columns.map(([name, title, , kind]) => this.heading(name, title, kind))));
    const table = longTable(head, order, (index, i) => this.row(index, i), { class: "tape", "aria-label": "Tape, sortable" });
    this.box.replaceChildren(this.rows.length ? table : make("p", { class: "none" }, "Nothing is saved: all that the reverse sweep needs is recomputed."));
  }

  heading(name, title, kind) {
    const is = name === this.order.key;
    const button = make("button", { type: "button" }, title, make("span", { "aria-hidden": "true", class: "arrow" }, is ? (this.order.isDown ? "▾" : "▴") : ""));
    button.addEventListener("click", () => {
      this.order = { key: name, isDown: is ? !this.order.isDown : ["total", "size", "slots"].includes(name) };
      this.draw();
      this.box.querySelector(`th[data-key=${name}] button`).focus();
    });
    return make("th", { scope: "col", class: kind, "data-key": name, "aria-sort": is ? (this.order.isDown ? "descending" : "ascending") : null }, button);
  }

  cell(name, row) {
    const number = (value) => make("td", { class: "number" }, value.toLocaleString("en"));
    switch (name) {
      case "total": return make("td", { class: "number", title: plural(row.total, "byte") }, bytes(row.total));
      case "slots": return number(row.slots);
      case "size": return row.size === null ? make("td", { class: "number none", title: "as many as the program asks for" }, "array") : number(row.size);
      case "often": return make("td", { class: row.loops.length ? "loop" : "" }, often(row));
      case "line": return make("td", { class: "number" }, row.line === null ? make("small", {}, row.place) : String(row.line));
      case "name": return make("td", { title: row.value }, row.name);
      case "fn": return make("td", { title: row.fn }, row.fn);
      default: return make("td", { class: "why" }, row.why);
    }
  }

  row(index, i) {
    const row = this.rows[index];
    const cells = this.columns.map(([name]) => this.cell(name, row));
    return make("tr", { "data-entry": index, tabindex: i ? "-1" : "0", title: this.isMeasured ? often(row) : null }, ...cells);
  }
}

class CallGraph {
  constructor(svg, card, onFunction) {
    Object.assign(this, { svg, card, onFunction });
    this.nodes = [...svg.querySelectorAll(".node")];
    svg.addEventListener("click", (event) => this.pick(event.target.closest(".node")));
    svg.addEventListener("keydown", (event) => this.key(event));
    if (HEAD.functions.length) this.show(0);
  }

  pick(node) {
    if (!node) return;
    const index = Number(node.dataset.function);
    this.show(index);
    this.onFunction(HEAD.functions[index]);
  }

  key(event) {
    const at = this.nodes.indexOf(event.target.closest(".node"));
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") this.pick(this.nodes[at]);
    else if (step) this.nodes[(at + step + this.nodes.length) % this.nodes.length].focus();
    else return;
    event.preventDefault();
  }

  show(index) {
    for (const node of this.nodes) {
      const is = Number(node.dataset.function) === index;
      node.setAttribute("aria-pressed", String(is));
      node.tabIndex = is ? 0 : -1;
    }
    for (const edge of this.svg.querySelectorAll(".edge")) {
      edge.classList.toggle("near", Number(edge.dataset.caller) === index || Number(edge.dataset.callee) === index);
    }
    const fn = HEAD.functions[index];
    const fact = (name, ...nodes) => make("div", {}, make("dt", {}, name), make("dd", {}, ...nodes));
    this.card.replaceChildren(make("h3", {}, make("code", {}, fn.name)), make("dl", { class: "line-facts" },
      fact("variant", fn.variant), fn.place ? fact("defined", fn.place) : null,
      fact("values", `${fn.active} of ${plural(fn.values, "value")} active, ${fn.saved} on the tape`),
      fact("in the stages", ...fn.pair.map((name) => make("code", { class: "symbol", title: fn.symbol }, name)))));
  }
}
