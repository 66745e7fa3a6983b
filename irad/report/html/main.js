// Joins the parts: one line is chosen, all panels show it.

const app = { line: null };

function choose(number, from = null) {
  const row = source.rowOf.get(number);
  if (row === undefined || app.line === number) return;
  app.line = number;
  source.show(number);
  for (const pane of panes) pane.setLine(number, { stay: pane === from });
  facts.show(source.lines[row]);
  byId("status").textContent = `Line ${number}${source.lines[row].inWords ? `: ${source.lines[row].inWords}` : ""}`;
  if (location.protocol !== "about:") history.replaceState(null, "", `#L${number}`);
}

const source = new SourceView(byId("source"), (number) => choose(number));
const panes = makePanes({
  onLine: choose,
  onValue: (value) => { if (value) facts.mark(value); },
});
const facts = new LineFacts(byId("facts-line"), (value) => { for (const pane of panes) pane.setValue(value); });
const tape = new TapeTable(byId("facts-tape"), (row) => {
  if (row.line !== null) choose(row.line);
  for (const pane of panes) pane.setValue(row.value);
});
const graph = new CallGraph(byId("graph"), byId("card"), (fn) => { if (fn.line !== null) choose(fn.line); });
const search = new Search(byId("search"), byId("results"), source, {
  onWord: (word) => {
    source.word = word;
    source.list.refresh();
    for (const pane of panes) pane.setWord(word);
  },
  onPick: ({ stage, index, line }) => {
    if (stage === null) { choose(line); byId("source").focus(); return; }
    const pane = panes.find((each) => each.name === stage) ?? panes[0];
    pane.goTo(stage, index).then(() => pane.box.focus());
  },
});

// Tabs: arrows choose, as the pattern for tabs has it.
const tabs = [...document.querySelectorAll("[role=tab]")];
function openTab(tab) {
  for (const each of tabs) {
    const is = each === tab;
    each.setAttribute("aria-selected", String(is));
    each.tabIndex = is ? 0 : -1;
    byId(each.getAttribute("aria-controls")).hidden = !is;
  }
}
for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => openTab(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    openTab(next);
    next.focus();
  });
}

// Borders between panels, moved by pointer or arrow keys.
function splitter(border, panel, property, isVertical) {
  const set = (share) => {
    const percentage = Math.max(15, Math.min(85, share));
    panel.style.setProperty(property, `${percentage}%`);
    border.setAttribute("aria-valuenow", String(Math.round(percentage)));
    border.setAttribute("aria-valuemin", "15");
    border.setAttribute("aria-valuemax", "85");
  };
  const shareAt = (event) => {
    const area = panel.getBoundingClientRect();
    return 100 * (isVertical ? (event.clientX - area.left) / area.width : (event.clientY - area.top) / area.height);
  };
  border.addEventListener("pointerdown", (event) => { border.setPointerCapture(event.pointerId); event.preventDefault(); });
  border.addEventListener("pointermove", (event) => { if (border.hasPointerCapture(event.pointerId)) set(shareAt(event)); });
  border.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[event.key];
    if (!step) return;
    set(Number(border.getAttribute("aria-valuenow")) + step);
    event.preventDefault();
  });
  set(parseFloat(getComputedStyle(panel).getPropertyValue(property)));
}
splitter(byId("split-main"), byId("main"), "--left", true);
splitter(byId("split-left"), byId("left"), "--top", false);

// Colours of the rulers are read when they are drawn: draw them again when the theme changes.
function redrawRulers() { for (const { list } of [source, ...panes]) list.drawRuler(); }
byId("theme").addEventListener("change", (event) => {
  document.documentElement.dataset.theme = event.target.value;
  redrawRulers();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawRulers);

const help = byId("help");
byId("help-button").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  if (event.key === "/") byId("search").select();
  else if (event.key === "?") help.showModal();
  else if ((event.key === "n" || event.key === "p") && !event.target.closest("#panes")) for (const pane of panes) pane.step(event.key === "n" ? 1 : -1);
  else return;
  event.preventDefault();
});

// Without a line in the address: the first that is refused, or of the lines with code in most panes the heaviest.
function chooseFromAddress() {
  const wanted = Number(/^#L(\d+)$/.exec(location.hash)?.[1]);
  const shown = panes.map(({ stage }) => new Set(stage.lines));
  const numbers = ({ saved, perIteration, perCall }) => Math.floor((saved ?? perIteration * 1e6 + perCall) / 8); // a flag of a byte does not count
  const weight = (line) => (line.share ?? 0) * 1e15 + numbers(line) * 1e4 + line.active.length;
  const rank = (line) => [shown.filter((lines) => lines.has(line.number)).length, weight(line)];
  const isAhead = ([panesOf, weightOf], [most, heaviest]) => panesOf > most || (panesOf === most && weightOf > heaviest);
  const best = source.lines.reduce((best, line) => (best === null || isAhead(rank(line), rank(best)) ? line : best), null);
  const refused = source.lines.find((line) => line.refusals.length);
  const number = source.rowOf.has(wanted) ? wanted : (refused ?? best)?.number;
  if (number !== undefined) choose(number);
}
Promise.all(panes.map((pane) => pane.ready)).then(() => {
  addEventListener("hashchange", chooseFromAddress);
  chooseFromAddress();
  performance.mark("ready");
  document.documentElement.dataset.ready = "";
});
