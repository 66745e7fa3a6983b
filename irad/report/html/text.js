"use strict";
// Small things that the other parts share: elements, numbers, colours of the languages.

/** An element with attributes and children; texts become text nodes, never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);

/** Bytes as people write them; nothing for none. */
function bytes(count) {
  if (count < 10000) return String(count);
  const units = ["K", "M", "G"];
  let size = count, unit = -1;
  while (size >= 1000 && unit < 2) { size /= 1024; unit += 1; }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)}${units[unit]}`;
}

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function percent(share) {
  if (share >= 0.0995) return `${Math.round(100 * share)} %`;
  return share < 0.0005 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** A time with the unit that suits it. */
function seconds(time) {
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) if (time >= size) return `${(time / size).toPrecision(time / size < 100 ? 2 : 3)} ${unit}`;
  return `${Math.round(time / 1e-9)} ns`;
}

// A language is a list of [class, pattern]; what matches none is plain.
const LANGUAGES = {
  python: [
    ["comment", /#.*/],
    ["string", /[rbfuRBFU]{0,2}(?:"""(?:.|$)*?(?:"""|$)|'''.*?(?:'''|$)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')/],
    ["keyword", /\b(?:and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b/],
    ["decorator", /@[\w.]+/],
    ["number", /\b(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?)\b/],
    ["name", /[A-Za-z_]\w*/],
  ],
  llvm: [
    ["comment", /;.*/],
    ["string", /c?"[^"]*"/],
    ["label", /^[-\w.$]+:/],
    ["global", /@(?:[-\w.$]+|"[^"]*")/],
    ["value", /%(?:[-\w.$]+|"[^"]*")/],
    ["meta", /![\w.]*|#\d+/],
    ["type", /\b(?:i\d+|double|float|half|bfloat|ptr|void|label|metadata|x86_fp80|fp128)\b/],
    ["keyword", /\b(?:define|declare|ret|br|switch|unreachable|invoke|call|tail|musttail|phi|select|load|store|alloca|getelementptr|inbounds|nuw|nsw|f(?:add|sub|mul|div|rem|neg|cmp)|[su]?(?:add|sub|mul|div|rem)|icmp|shl|[la]shr|and|or|xor|[sz]ext|trunc|fp(?:ext|trunc|to[su]i)|[su]itofp|ptrtoint|inttoptr|bitcast|freeze|(?:extract|insert)(?:value|element)|shufflevector|atomicrmw|cmpxchg|fence|to|fast|reassoc|contract|nnan|ninf|nsz|arcp|afn|volatile)\b/],
    ["number", /-?\b(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b/],
  ],
  nasm: [
    ["comment", /[#;].*/],
    ["string", /"(?:\\.|[^"\\])*"/],
    ["label", /^[.\w$@"<>]+:/],
    ["meta", /^\s*\.[\w.]+/],
    ["value", /%?\b(?:[re]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][lh]|r\d+[dwb]?|[xyz]mm\d+|k[0-7])\b/],
    ["keyword", /^\s*[a-z][\w.]*/],
    ["type", /\b(?:[xyz]mmword|[dq]?word|byte|ptr)\b/],
    ["number", /[-$]?\b(?:0x[\da-fA-F]+|\d+)\b/],
  ],
};
LANGUAGES.ptx = [
  ["comment", /\/\/.*/],
  ["value", /%\w+(?:\.\w+)?/],
  ["keyword", /^\s*(?:@!?%\w+\s+)?[a-z][\w.]*/],
  ["label", /^[\w$]+:/],
  ["number", /\b(?:0[fdx][\da-fA-F]+|\d+)\b/],
];
LANGUAGES.gas = LANGUAGES.nasm;
const PATTERNS = Object.fromEntries(Object.entries(LANGUAGES).map(([language, rules]) =>
  [language, new RegExp(rules.map(([, pattern]) => `(${pattern.source})`).join("|"), "g")]));

/** A line of text as nodes, coloured. `nameClass` may give Python names a class of their own. */
function coloured(text, language, nameClass = () => "") {
  const rules = LANGUAGES[language];
  if (!rules || text.length > 4000) return [document.createTextNode(text)];
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(PATTERNS[language])) {
    if (match[0] === "") continue;
    if (match.index > end) nodes.push(document.createTextNode(text.slice(end, match.index)));
    const kind = rules[match.slice(1).findIndex((group) => group !== undefined)][0];
    const own = kind === "name" ? nameClass(match[0]) : `t-${kind}`;
    nodes.push(own ? make("span", { class: own }, match[0]) : document.createTextNode(match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}

/** Puts <mark> around every place of a word in an element that is already coloured. */
function markWord(element, word) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  const whole = texts.map((node) => node.data).join("").toLowerCase();
  const spans = [];
  for (let at = whole.indexOf(word); at >= 0; at = whole.indexOf(word, at + word.length)) spans.push([at, at + word.length]);
  let start = 0;
  for (const node of texts) {
    const size = node.data.length;
    const inside = spans.map(([a, b]) => [Math.max(a - start, 0), Math.min(b - start, size)]).filter(([a, b]) => a < b);
    if (inside.length) {
      const parts = [];
      let end = 0;
      for (const [a, b] of inside) {
        parts.push(node.data.slice(end, a), make("mark", {}, node.data.slice(a, b)));
        end = b;
      }
      node.replaceWith(...parts, node.data.slice(end));
    }
    start += size;
  }
}

/** The contents of a block: base64 of zlib's format, JSON inside. Each is unpacked once. */
const unpacked = new Map();
function unpack(name) {
  if (!unpacked.has(name)) unpacked.set(name, (async () => {
    const packed = Uint8Array.from(atob(byId(`block-${name}`).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  })());
  return unpacked.get(name);
}
