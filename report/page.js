"use strict";
// The browser of single outputs. All that an output says reaches the page as text, never as markup; the only markup is
// the drawing of the problem.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const SVG = "http:" + "//www.w3.org/2000/svg"; // a name, not an address
const PITCH = data.pitch, RIM = 2, SUDOKU = data.task === "sudoku";
let shown = [], current = -1, step = 0, timer = 0, columns = 9;

function make(name, attributes = {}, text = "", root = null) {
  const element = root === SVG ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== "") element.textContent = text;
  return element;
}
const draw = (name, attributes, text = "") => make(name, attributes, text, SVG);
const sample = () => data.samples[shown[current]];
const words = (name) => name.replaceAll("_", " ");
const place = (cell) => [cell % columns, Math.floor(cell / columns)];
const middle = (cell) => place(cell).map((k) => PITCH * (k + 0.5));
const known = (cell) => Number.isInteger(cell) && cell >= 0 && cell < columns * columns;
const shade = (k, n) => data.shades[Math.round(((n > 1 ? k / (n - 1) : 0)) * (data.shades.length - 1))];
const hue = (block) => `hsl(${Math.round((block * 360) / data.blocks + 210) % 360} 62% 72%)`;

// Filters and the list

const TESTS = {
  faulty: (s) => s.faults > 0,
  illegal: (s) => s.parsed && !s.legal,
  adherent: (s) => s.parsed && !s.adherent,
  complete: (s) => s.parsed && s.legal && !s.complete,
  answer: (s) => s.parsed && !s.answer_correct,
  parsed: (s) => !s.parsed,
  fell_back: (s) => s.fell_back === true,
  joint: (s) => s.joint,
};

function verdict(s) {
  if (!s.parsed) return `unreadable: ${words(s.parse)}`;
  const parts = [];
  if (!s.legal) parts.push(s.first < 0 ? words(s.reason) : `step ${s.first + 1}: ${words(s.reason)}`);
  else if (!s.complete) parts.push("incomplete");
  if (!s.adherent) parts.push(s.identified.length ? `looks like ${s.identified.join(", ")}` : "like no strategy");
  if (!s.answer_correct) parts.push(`answer: ${words(s.wrong)}`);
  return parts.join("; ") || "no fault";
}

function filter() {
  const wanted = ["protocol", "asked", "verdict"].map((id) => find(id).value);
  const before = current >= 0 ? shown[current] : -1;
  shown = data.samples.keys().filter((k) => {
    const s = data.samples[k];
    return (!wanted[0] || s.protocol === wanted[0]) && (!wanted[1] || s.asked === wanted[1]) && (!wanted[2] || TESTS[wanted[2]](s));
  });
  shown = [...shown];
  find("list").replaceChildren(...shown.map((k, row) => {
    const s = data.samples[k], item = make("li");
    item.append(make("b", {}, `${s.asked}`), ` · ${s.protocol}${s.field && s.field !== "neutral" && s.field !== s.asked ? ` · field ${s.field}` : ""} · ${data.task} ${s.id}`);
    item.append(make("span", { class: s.faults ? "bad" : "good" }, verdict(s)));
    item.addEventListener("click", () => open(row));
    return item;
  }));
  find("count").textContent = `${shown.length} of ${data.samples.length} outputs`;
  find("nothing").hidden = shown.length > 0;
  find("one").hidden = shown.length === 0;
  current = -1;
  if (shown.length) open(Math.max(0, shown.indexOf(before)));
}

function open(row) {
  stop();
  current = row;
  const s = sample();
  columns = data.boards[s.board].columns;
  [...find("list").children].forEach((item, k) => item.setAttribute("aria-current", String(k === row)));
  const item = find("list").children[row], list = find("list");
  if (item.offsetTop < list.scrollTop || item.offsetTop + item.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = item.offsetTop - 40;
  find("name").textContent = `${data.task} ${s.id}, ${s.protocol}: asked for ${s.asked}` + (s.field ? `, field says ${s.field}` : "");
  const verdicts = [
    ["parsed", s.parsed, "readable", `unreadable: ${words(s.parse)}`],
    ["adherent", s.adherent, "follows the strategy", s.identified.length ? `follows ${s.identified.join(", ")}` : "follows no strategy"],
    ["legal", s.legal, "every step legal", s.first < 0 ? words(s.reason) : `step ${s.first + 1} illegal: ${words(s.reason)}`],
    ["complete", s.complete, "complete", "incomplete"],
    ["answer", s.answer_correct, "right answer", `wrong answer: ${words(s.wrong)}`],
  ];
  const told = s.parsed ? verdicts : verdicts.slice(0, 1);
  find("verdicts").replaceChildren(...told.map(([name, good, yes, no]) => make("li", { class: good ? "good" : "bad", "data-verdict": name }, `${good ? "✓" : "✗"} ${good ? yes : no}`)));
  if (s.cut) find("verdicts").append(make("li", { class: "bad" }, "cut at the longest output"));
  if (s.parts !== undefined) find("verdicts").append(make("li", {}, `parts from its reference at token ${s.parts + 1}`));
  if (s.fell_back) find("verdicts").append(make("li", { class: "bad" }, "left the template's supported windows"));
  find("slider").max = last();
  find("fault").disabled = s.first < 0;
  find("trace").replaceChildren(...s.steps.map((what, k) => {
    const entry = make("li", k === s.first ? { class: "fault", title: words(s.reason) } : {}, brief(what));
    entry.addEventListener("click", () => move(k + 1));
    return entry;
  }));
  setBoard(s);
  setRoutes(s);
  go(s.first >= 0 ? s.first + 1 : last());
}

// Steps. Step 0 is the problem alone, the last one the answer.

const last = () => sample().steps.length + 1;
const cellName = (cell) => (SUDOKU ? `r${Math.floor(cell / 9) + 1}c${(cell % 9) + 1}` : `cell ${cell} (row ${place(cell)[1]}, column ${place(cell)[0]})`);
const unitName = (unit) => `${["row", "column", "box"][Math.floor(unit / 9)] ?? "unit"} ${(unit % 9) + 1}`;

function brief(what) {
  if (!SUDOKU) return String(what);
  if (what[0] === 0) return `r${Math.floor(what[1] / 9) + 1}c${(what[1] % 9) + 1}=${what[2]}`;
  return what[0] === 1 ? `undo r${Math.floor(what[1] / 9) + 1}c${(what[1] % 9) + 1}` : what[0] === 2 ? "wave" : "?";
}

function sentence(s, what) {
  if (!SUDOKU) return cellName(what);
  if (what[0] === 0) return `${what[2]} at ${cellName(what[1])}` + (what[3] >= 0 ? `, the only place in ${unitName(what[3])}` : "");
  return what[0] === 1 ? `undo ${cellName(what[1])}` : what[0] === 2 ? "the wave is over" : "symbols that form no step";
}

function caption(s) {
  if (step === 0) return `${s.steps.length} steps to come`;
  if (step > s.steps.length && !s.parsed) return "the answer, as far as the output could be read";
  if (step > s.steps.length) return s.answer.length ? `the answer, ${s.answer_correct ? "right" : `wrong: ${words(s.wrong)}`}` : "no answer";
  const beyond = s.first >= 0 && step - 1 > s.first ? " (behind the first illegal step)" : "";
  return `step ${step} of ${s.steps.length}: ${sentence(s, s.steps[step - 1])}${beyond}`;
}

function go(to) {
  const s = sample();
  step = Math.max(0, Math.min(last(), to));
  if (step === last()) stop();
  find("slider").value = step;
  find("play").textContent = timer ? "Pause" : "Play";
  find("caption").replaceChildren(caption(s));
  if (s.first >= 0 && step === s.first + 1) find("caption").append(make("br"), make("b", { class: "bad", id: "why" }, `✗ first illegal step: ${words(s.reason)}`));
  [...find("trace").children].forEach((item, k) => {
    item.classList.toggle("now", k === step - 1);
    item.classList.toggle("later", k >= step);
  });
  const now = find("trace").children[step - 1], box = find("trace");
  if (now) box.scrollTop = now.offsetTop - box.offsetTop - 40;
  drawStep(s);
  const needle = document.querySelector(".needle");
  if (needle) needle.style.left = `${(100 * (tokenAt(s) + 0.5)) / s.tokens}%`;
}

// The board

let layers = {};

function setBoard(s) {
  const board = find("board"), side = PITCH * columns;
  board.setAttribute("viewBox", `${-RIM} ${-RIM} ${side + 2 * RIM} ${side + 2 * RIM}`);
  board.innerHTML = data.boards[s.board].svg;
  layers = SUDOKU ? sudokuLayers(board) : mazeLayers(board);
  showRight();
}

function layer(before, attributes) {
  const group = draw("g", attributes);
  before.parentNode.insertBefore(group, before);
  return group;
}

function mazeLayers(board) {
  const walls = board.querySelector(".walls");
  return {
    right: [...board.children].find((g) => g.hasAttribute("data-t")),
    tints: layer(walls, { class: "tints" }),
    walk: layer(walls, { class: "walk" }),
    own: layer(walls, {}),
    numbers: board.querySelector(".numbers"),
    top: board.appendChild(draw("g", {})),
  };
}

function sudokuLayers(board) {
  const solved = board.querySelector(".solved"), lines = board.querySelector(".walls");
  return { right: solved, tints: layer(solved, { class: "tints placed" }), own: layer(lines, { "text-anchor": "middle", "font-size": 23 }), top: board.appendChild(draw("g", {})) };
}

function showRight() {
  if (layers.right) layers.right.classList.toggle("off", !find("right").checked);
}

const square = (cell, fill, beyond) => {
  const [x, y] = place(cell);
  return draw("path", { d: `M${PITCH * x} ${PITCH * y}h${PITCH}v${PITCH}h-${PITCH}z`, fill, class: beyond ? "beyond" : "" });
};
const frame = (cell, name) => {
  const [x, y] = place(cell);
  return draw("rect", { x: PITCH * x + 3, y: PITCH * y + 3, width: PITCH - 6, height: PITCH - 6, class: name });
};
const cross = (cell) => {
  const [x, y] = place(cell).map((k) => PITCH * k);
  return draw("path", { class: "crossed", d: `M${x + 8} ${y + 8}l${PITCH - 16} ${PITCH - 16}M${x + PITCH - 8} ${y + 8}l-${PITCH - 16} ${PITCH - 16}` });
};

function drawStep(s) {
  for (const name of ["tints", "walk", "own", "numbers", "top"]) if (layers[name]) layers[name].replaceChildren();
  if (SUDOKU) drawSudoku(s);
  else drawMaze(s);
}

function drawMaze(s) {
  const made = s.steps.slice(0, step), seen = new Set();
  made.forEach((cell, k) => {
    if (!known(cell) || seen.has(cell)) return;
    seen.add(cell);
    const beyond = s.first >= 0 && k > s.first, [x, y] = place(cell);
    layers.tints.append(square(cell, shade(k, s.steps.length), beyond));
    layers.numbers.append(draw("text", { x: PITCH * x + 3, y: PITCH * y + 12, class: beyond ? "beyond" : "" }, String(k + 1)));
  });
  if (s.asked === "dfs" && made.length > 1) {
    layers.walk.append(draw("path", { d: "M" + made.filter(known).map((cell) => middle(cell).map((p) => p + 4).join(" ")).join("L") }));
  }
  if (step > s.steps.length && s.answer.some(known)) {
    const d = "M" + s.answer.filter(known).map((cell) => middle(cell).join(" ")).join("L");
    layers.own.append(draw("path", { d, class: "own casing" }), draw("path", { d, class: s.answer_correct ? "own answer" : "own wrong" }));
  } else if (made.length && known(made.at(-1))) {
    layers.top.append(frame(made.at(-1), "cursor"));
  }
  if (s.first >= 0 && step > s.first && known(s.steps[s.first])) layers.top.append(cross(s.steps[s.first]));
}

function drawSudoku(s) {
  const grid = new Map(), digit = (cell, text, name) => {
    const [x, y] = place(cell);
    return draw("text", { x: PITCH * (x + 0.5), y: PITCH * y + 31, class: name }, text);
  };
  if (step > s.steps.length) {
    const right = data.boards[s.board].right;
    s.answer.forEach((value, cell) => {
      if (known(cell)) layers.own.append(digit(cell, String(value), value === right[cell] ? "ink" : "wrongdigit"));
    });
    return;
  }
  s.steps.slice(0, step).forEach((what, k) => {
    if (what[0] === 0) grid.set(what[1], [what[2], k]);
    else if (what[0] === 1) grid.delete(what[1]);
  });
  for (const [cell, [value, k]] of grid) {
    const beyond = s.first >= 0 && k > s.first, [x, y] = place(cell);
    layers.tints.append(square(cell, shade(k, s.steps.length), beyond));
    layers.own.append(digit(cell, String(value), beyond ? "ink beyond" : "ink"));
    layers.own.append(draw("text", { x: PITCH * x + 3, y: PITCH * y + 11, "font-size": 9, "text-anchor": "start", class: "quiet" }, String(k + 1)));
  }
  const now = step > 0 ? s.steps[step - 1] : null;
  if (now && (now[0] === 0 || now[0] === 1)) {
    if (now[3] >= 0 && now[3] < 27) layers.top.append(unitFrame(now[3]));
    layers.top.append(frame(now[1], "cursor"));
  }
  const bad = s.first >= 0 && step > s.first ? s.steps[s.first] : null;
  if (bad && bad[0] < 2) layers.top.append(cross(bad[1]));
}

function unitFrame(unit) {
  const k = unit % 9, kind = Math.floor(unit / 9);
  const [x, y, w, h] = kind === 0 ? [0, k, 9, 1] : kind === 1 ? [k, 0, 1, 9] : [3 * (k % 3), 3 * Math.floor(k / 3), 3, 3];
  return draw("rect", { x: PITCH * x + 1, y: PITCH * y + 1, width: PITCH * w - 2, height: PITCH * h - 2, class: "unit" });
}

// The blocks. Token j of an output is predicted at position j behind the prompt, where <trace> is position 0.

function tokenAt(s) {
  if (step === 0) return 0;
  if (step > s.steps.length) return Math.min(s.tokens - 1, traceTokens(s) + 1);
  return s.starts ? s.starts[step - 1] : step - 1;
}

const traceTokens = (s) => (s.starts ? s.tokens - s.answer.length - 2 : s.steps.length);

function setRoutes(s) {
  find("routes").parentNode.hidden = !data.windows;
  if (!data.windows) return;
  const { window: width, shift, depth } = data.windows, template = data.templates[s.protocol];
  const strategy = data.strategies.indexOf(s.asked);
  find("routenote").textContent = s.blocks.length ? `depth by token, ${s.tokens} tokens; a number is a block` : "";
  if (!s.blocks.length || !s.tokens) {
    find("routes").replaceChildren("This output has no record of its blocks.");
    return;
  }
  const rows = s.blocks.map((blocks, level) => {
    const row = make("div", { class: "level" }), track = make("div"), offset = (level * shift) % width, label = make("span");
    label.append("depth ", make("b", {}, String(level + 1)));
    blocks.forEach((block, k) => {
      const from = Math.max(0, k * width - offset), to = Math.min(s.tokens, (k + 1) * width - offset);
      if (to <= from) return;
      const cells = template?.[strategy]?.[level], wanted = cells?.[Math.min(k + 1, cells.length - 1)];
      const part = make("i", { style: `left:${(100 * from) / s.tokens}%;width:${(100 * (to - from)) / s.tokens}%;background:${hue(block)}` }, String(block));
      part.title = `depth ${level + 1}, window ${k + 1}: block ${block}` + (wanted === undefined ? "" : `, template ${wanted}`);
      if (wanted !== undefined && wanted !== block) part.classList.add("off");
      track.append(part);
    });
    row.append(label, track);
    return row;
  });
  const cover = make("div", { class: "level", style: "position:absolute;inset:0;margin:0;pointer-events:none" }), track = make("div", { style: "height:100%;background:none" });
  track.append(make("div", { class: "needle" }));
  cover.append(make("span"), track);
  const keys = make("div", { class: "keys" });
  keys.append(make("span", {}, "pink line: the position whose output is the step at hand"));
  const box = make("div", { style: "position:relative" });
  box.append(...rows, cover);
  find("routes").replaceChildren(box, keys);
}

// Playing

function stop() {
  clearInterval(timer);
  timer = 0;
  find("play").textContent = "Play";
}
function start() {
  if (step >= last()) step = 0;
  timer = setInterval(() => go(step + 1), 220);
  go(step);
}
const toggle = () => (timer ? stop() : start());
function move(to) {
  stop();
  go(to);
}

function fill(id, values) {
  find(id).append(...values.map((value) => make("option", { value }, value)));
}

if (data.samples && data.samples.length) {
  fill("protocol", data.protocols);
  fill("asked", data.strategies);
  find("browser").hidden = false;
  for (const id of ["protocol", "asked", "verdict"]) find(id).addEventListener("change", filter);
  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("begin").addEventListener("click", () => move(0));
  find("back").addEventListener("click", () => move(step - 1));
  find("play").addEventListener("click", toggle);
  find("forward").addEventListener("click", () => move(step + 1));
  find("end").addEventListener("click", () => move(last()));
  find("fault").addEventListener("click", () => move(sample().first + 1));
  find("slider").addEventListener("input", () => move(Number(find("slider").value)));
  find("right").addEventListener("change", showRight);
  find("browser").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, input") || current < 0) return;
    if (event.key === "ArrowLeft") move(step - 1);
    else if (event.key === "ArrowRight") move(step + 1);
    else if (event.key === "ArrowDown") open(Math.min(shown.length - 1, current + 1));
    else if (event.key === "ArrowUp") open(Math.max(0, current - 1));
    else if (event.key === " " && !event.target.matches("button")) toggle();
    else return;
    event.preventDefault();
  });
  filter();
}
