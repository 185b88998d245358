// The map of clusters on a canvas: drag, wheel, pinch or keys to move; labels appear where there is space for them.
import { el } from "./dom.js";

const COVERED = .15; // of the map, by clusters whose areas are their sizes
const SPECK = 4; // pixels: a label may hide clusters that are smaller
const LARGEST = 60; // pixels: the radius of the largest cluster at most
const PIXELS_A_LABEL = 5000;
const SHARED = 14; // letters in common, from which on long names are told apart by their ends

// Names by which clusters can be told apart when there is space for a word or two: the words that few others have come first.
function labels(names) {
  const words = names.map(name => name.split(", ")), n = new Map();
  for (const word of words.flatMap(each => [...new Set(each)])) n.set(word, (n.get(word) || 0) + 1);
  const rarest = each => each.map((word, at) => [n.get(word), at, word]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(one => one[2]);
  const heads = new Map();
  for (const word of n.keys()) heads.set(word.slice(0, SHARED), (heads.get(word.slice(0, SHARED)) || 0) + 1);
  return words.map(each => ({ words: rarest(each), byTail: heads.get(rarest(each)[0].slice(0, SHARED)) > 1 }));
}

// As many of a name's words as have space; else the part of the first that tells it from others: its beginning, or its end.
function shortened({ words, byTail }, longest) {
  let text = "";
  for (const word of words) {
    const more = text ? text + ", " + word : word;
    if (more.length > longest) return text || (byTail ? "…" + more.slice(1 - longest) : more.slice(0, longest - 1) + "…");
    text = more;
  }
  return text;
}

export class ClusterMap {
  constructor(onChoose, { wheelNeedsFocus = false } = {}) {
    this.onChoose = onChoose;
    this.wheelNeedsFocus = wheelNeedsFocus; // on a page that scrolls, the wheel zooms only after a click into the map
    this.data = { id: [], name: [], size: [], x: [], y: [], bursting: [] };
    this.zoom = 1; this.center = [.5, .5]; this.chosen = null; this.found = null; this.pointers = new Map();
    this.canvas = el("canvas", { tabIndex: 0, role: "img", "aria-label": "Map of clusters; arrows move, plus and minus zoom. The list below holds the same clusters." });
    this.tip = el("div", { className: "tip", hidden: true });
    this.element = el("div", { className: "map" }, this.canvas, this.tip, el("div", { className: "zoom" },
      el("button", { "aria-label": "Zoom in", onclick: () => this.scale(1.5) }, "+"), el("button", { "aria-label": "Zoom out", onclick: () => this.scale(1 / 1.5) }, "−"),
      el("button", { "aria-label": "Whole map", onclick: () => { this.zoom = 1; this.center = [.5, .5]; this.draw(); } }, "⤢")));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw();
    this.scheme.addEventListener("change", this.redraw);
    this.listen();
  }
  stop() { this.observer.disconnect(); this.scheme.removeEventListener("change", this.redraw); }
  show(data) {
    this.data = data; this.labels = labels(data.name);
    this.total = data.size.reduce((sum, size) => sum + Math.max(0, size), 0) || 1;
    this.largest = data.size.reduce((most, size) => Math.max(most, size), 1);
    this.order = data.id.map((_, at) => at).sort((a, b) => data.size[b] - data.size[a]);
    this.draw();
  }
  select(id) { this.chosen = id; this.draw(); }
  highlight(ids) { this.found = ids; this.draw(); }
  scale(by, at = null) {
    const before = at && this.place(at);
    this.zoom = Math.max(1, Math.min(80, this.zoom * by));
    if (before) { const after = this.place(at); this.center = [this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]]; }
    this.draw();
  }
  move(dx, dy) { this.center = [this.center[0] - dx / this.span(0), this.center[1] - dy / this.span(1)]; this.draw(); }
  span(axis) { return (axis ? this.canvas.clientHeight : this.canvas.clientWidth) * .92 * this.zoom; }
  place([x, y]) { return [(x - this.canvas.clientWidth / 2) / this.span(0) + this.center[0], (y - this.canvas.clientHeight / 2) / this.span(1) + this.center[1]]; }
  at(row) { return [(this.data.x[row] - this.center[0]) * this.span(0) + this.canvas.clientWidth / 2, (this.data.y[row] - this.center[1]) * this.span(1) + this.canvas.clientHeight / 2]; }
  radius(row) {
    // One scale for all, at which the largest has room: a limit for each would draw different sizes alike.
    const scale = Math.min(COVERED * this.span(0) * this.span(1) / this.total, Math.PI * LARGEST ** 2 / this.largest);
    return Math.max(2, Math.sqrt(scale * Math.max(0, this.data.size[row]) / Math.PI));
  }
  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paint(); });
  }
  paint() {
    const { canvas, data } = this, width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue(name).trim();
    const [dot, blue, ink, rise, paper] = ["--dot", "--blue", "--ink", "--rise", "--paper"].map(color);
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle";
    const boxes = [], visible = [];
    for (const row of this.order || []) {
      const [x, y] = this.at(row), radius = this.radius(row);
      if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue;
      pen.globalAlpha = this.found && !this.found.has(data.id[row]) ? .25 : 1;
      pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fillStyle = dot; pen.fill();
      if (radius > SPECK) { pen.lineWidth = 1; pen.strokeStyle = paper; pen.stroke(); }
      if (data.bursting[row] || data.id[row] === this.chosen) { pen.lineWidth = 2.5; pen.strokeStyle = data.id[row] === this.chosen ? blue : rise; pen.stroke(); }
      visible.push([row, x, y, radius]);
    }
    if (this.found) visible.sort((a, b) => this.found.has(data.id[b[0]]) - this.found.has(data.id[a[0]]));
    const chosen = visible.findIndex(([row]) => data.id[row] === this.chosen);
    if (chosen > 0) visible.unshift(...visible.splice(chosen, 1));
    // A label may not cover another label, a button, nor the center of another cluster, unless its own is among the largest.
    const buttons = this.element.querySelector(".zoom");
    boxes.push([buttons.offsetLeft - 4, buttons.offsetTop, buttons.offsetLeft + buttons.offsetWidth, buttons.offsetTop + buttons.offsetHeight]);
    const most = Math.min(150, Math.max(12, width * height / PIXELS_A_LABEL));
    const cell = 14, across = Math.ceil(width / cell) + 1, crowd = new Uint16Array(across * (Math.ceil(height / cell) + 1));
    const cellAt = (x, y) => Math.max(0, Math.floor(y / cell)) * across + Math.max(0, Math.min(across - 1, Math.floor(x / cell)));
    for (const [, x, y, radius] of visible) if (radius > SPECK) crowd[cellAt(x, y)]++;
    const covers = ([left, top, right, bottom], own) => {
      let n = 0;
      for (let y = Math.floor((top + 4) / cell); y <= Math.floor((bottom - 4) / cell); y++)
        for (let x = Math.floor((left + 6) / cell); x <= Math.floor((right - 6) / cell); x++) n += crowd[Math.max(0, y) * across + x] || 0;
      return n > own;
    };
    const longest = this.zoom > 2 ? 34 : 24;
    for (const [row, x, y, radius] of visible) {
      if (boxes.length > most) break;
      if (this.found && !this.found.has(data.id[row]) && data.id[row] !== this.chosen) continue;
      const text = shortened(this.labels[row], longest), half = pen.measureText(text).width / 2 + 4;
      const box = [x - half, y - 9, x + half, y + 9];
      if (box[0] < 0 || box[2] > width || boxes.some(other => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      if (data.id[row] !== this.chosen && boxes.length > 8 && covers(box, radius > SPECK ? 1 : 0)) continue;
      boxes.push(box);
      pen.globalAlpha = 1;
      pen.lineWidth = 3; pen.strokeStyle = paper; pen.strokeText(text, x, y); pen.fillStyle = ink; pen.fillText(text, x, y);
    }
    pen.globalAlpha = 1;
  }
  // What is under the pointer: its name, size and features.
  point(spot) {
    const row = spot && this.nearest(spot, 6), { tip, data, canvas } = this;
    tip.hidden = row === null || row === undefined;
    if (tip.hidden) return;
    const about = data.about ? data.about[row] : `${Math.round(data.size[row]).toLocaleString("en")} items`;
    tip.replaceChildren(el("b", {}, data.name[row]), about);
    tip.style.left = Math.max(4, Math.min(spot[0] + 12, canvas.clientWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = (spot[1] + 16 + tip.offsetHeight > canvas.clientHeight ? Math.max(4, spot[1] - tip.offsetHeight - 8) : spot[1] + 16) + "px";
  }
  nearest([x, y], reach = 30) {
    let best = null, least = reach;
    for (let row = 0; row < this.data.id.length; row++) {
      const [px, py] = this.at(row), far = Math.hypot(px - x, py - y) - this.radius(row);
      if (far < least) { least = far; best = row; }
    }
    return best;
  }
  listen() {
    const spot = event => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let moved = 0;
    this.canvas.addEventListener("wheel", event => { if (this.wheelNeedsFocus && document.activeElement !== this.canvas) return; event.preventDefault(); this.scale(event.deltaY < 0 ? 1.2 : 1 / 1.2, spot(event)); }, { passive: false });
    this.canvas.addEventListener("pointerdown", event => { this.canvas.setPointerCapture(event.pointerId); this.pointers.set(event.pointerId, spot(event)); moved = 0; });
    this.canvas.addEventListener("pointermove", event => {
      const before = this.pointers.get(event.pointerId);
      if (!before) { this.point(event.pointerType === "mouse" ? spot(event) : null); return; }
      this.point(null);
      const now = spot(event), others = [...this.pointers].filter(([id]) => id !== event.pointerId);
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (others.length) {
        const other = others[0][1], apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
        this.scale(apart(now, other) / Math.max(1, apart(before, other)), [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      } else this.move(now[0] - before[0], now[1] - before[1]);
      this.pointers.set(event.pointerId, now);
    });
    const release = event => {
      if (this.pointers.delete(event.pointerId) && event.type === "pointerup" && moved < 5) {
        const row = this.nearest(spot(event));
        if (row !== null) this.onChoose(this.data.id[row]);
      }
    };
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("pointerup", release);
    this.canvas.addEventListener("pointercancel", release);
    this.canvas.addEventListener("keydown", event => {
      const keys = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
      if (keys[event.key]) { event.preventDefault(); this.move(...keys[event.key]); }
      if (event.key === "+" || event.key === "=") this.scale(1.3);
      if (event.key === "-") this.scale(1 / 1.3);
    });
  }
}
