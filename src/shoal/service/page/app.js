// The page: the address says which view is shown, so that every view can be linked to.
import { request } from "./api.js";
import { el, short } from "./dom.js";
import { explore } from "./explore.js";
import { suggest } from "./suggest.js";
import { live } from "./live.js";
import { timeline } from "./timeline.js";
import { edits } from "./edits.js";

const views = { explore, suggest, live, timeline, edits };
let leave = null, shown = "";

export function address() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: name in views ? name : "explore", query: new URLSearchParams(query) };
}

async function route() {
  const { name, query } = address();
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.getAttribute("href") === "#/" + name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === shown && leave && leave.update) return leave.update(query);
  if (leave && leave.stop) leave.stop();
  leave = null; shown = name;
  const view = document.getElementById("view");
  view.replaceChildren(el("p", { className: "empty" }, "Loading …"));
  try {
    const running = await views[name](view, query);
    if (shown === name) leave = running;
  } catch (error) {
    view.replaceChildren(el("p", { className: "empty error" }, error.message),
      el("p", { className: "empty" }, el("button", { onclick: route }, "Try again")));
    shown = "";
  }
}

async function status() {
  const line = document.getElementById("status");
  try {
    const stats = await request("/stats");
    line.textContent = `${stats.model} · ${short(stats.clusters)} clusters · ${short(stats.items)} items learned`
      + (stats.lag_items ? ` · ${short(stats.lag_items)} waiting` : "") + (stats.read_only ? " · read-only" : "");
  } catch (error) { line.textContent = error.message; }
}

addEventListener("hashchange", route);
route();
status();
setInterval(status, 5000);
