"use strict";
// Plays every panel by one clock. An element with data-t is shown from that step on; one with data-w waits from there;
// one with data-u is taken away again by that step.
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const main = find("panels"), slider = find("slider"), play = find("play"), speed = find("speed");
const views = [...find("views").children];
const panels = data.panels.map((panel, k) => {
  const figure = main.children[k];
  const time = (element, key) => (key in element.dataset ? Number(element.dataset[key]) : Infinity);
  return {
    ...panel,
    figure,
    caption: figure.querySelector("figcaption"),
    cursor: figure.querySelector(".cursor"),
    timed: [...figure.querySelectorAll("[data-t], [data-w]")].map((e) => [e, time(e, "t"), time(e, "w"), time(e, "u")]),
  };
});
let step = 0, view = -1, timer = 0; // view -1: all panels

const place = (cell) => [cell % data.columns, Math.floor(cell / data.columns)];
const last = () => Math.max(...panels.filter((_, k) => view < 0 || view === k).map((panel) => panel.at.length));

function sentence(panel, now) {
  if (now === 0) return `${panel.at.length} steps to come`;
  const cell = panel.at[now - 1], [x, y] = place(cell), deed = data.deeds[panel.does[now - 1]];
  const where = data.numbered ? `cell ${cell} (row ${y}, column ${x}) ` : "";
  const end = now === panel.at.length ? "; done" : "";
  return `${panel.name} step ${now}: ${where}${deed}${end}`;
}

function draw() {
  panels.forEach((panel, k) => {
    panel.figure.classList.toggle("away", view >= 0 && view !== k);
    const now = Math.min(step, panel.at.length);
    for (const [element, from, waits, until] of panel.timed) {
      element.classList.toggle("off", (step < from && step < waits) || step >= until);
      element.classList.toggle("waiting", step < from && step >= waits);
    }
    const cell = now > 0 ? panel.at[now - 1] : null;
    panel.cursor.classList.toggle("off", cell === null || step > panel.at.length);
    if (cell !== null) {
      const [x, y] = place(cell);
      panel.cursor.style.transform = `translate(${data.pitch * x}px, ${data.pitch * y}px)`;
    }
    panel.caption.textContent = sentence(panel, now);
  });
  main.classList.toggle("alone", view >= 0);
  views.forEach((button, k) => button.setAttribute("aria-pressed", String(k - 1 === view)));
  slider.max = last();
  slider.value = step;
  find("clock").textContent = step;
  play.textContent = timer ? "Pause" : "Play";
}

function stop() {
  clearInterval(timer);
  timer = 0;
}

function go(to) {
  step = Math.max(0, Math.min(last(), to));
  if (step === last()) stop();
  draw();
}

function start() {
  stop();
  if (step >= last()) step = 0;
  timer = setInterval(() => go(step + 1), 1000 / Number(speed.value));
  draw();
}

function toggle() {
  if (!timer) return start();
  stop();
  draw();
}

function move(by) {
  stop();
  go(step + by);
}

views.forEach((button, k) => button.addEventListener("click", () => {
  view = k - 1;
  go(step);
}));
play.addEventListener("click", toggle);
find("back").addEventListener("click", () => move(-1));
find("forward").addEventListener("click", () => move(1));
slider.addEventListener("input", () => {
  stop();
  go(Number(slider.value));
});
speed.addEventListener("change", () => timer && start());
// A button that was clicked would otherwise take the space key to itself.
document.addEventListener("click", (event) => event.detail && document.activeElement.blur());
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select")) return;
  const onSlider = event.target === slider, onButton = event.target.matches("button");
  if (event.key === " " && !onButton) toggle();
  else if (event.key === "ArrowLeft" && !onSlider) move(-1);
  else if (event.key === "ArrowRight" && !onSlider) move(1);
  else return;
  event.preventDefault();
});

// Who asked for less motion sees the finished picture first, everybody else the search.
if (matchMedia("(prefers-reduced-motion: reduce)").matches) go(last());
else start();
