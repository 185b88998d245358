// Suggest: what goes with these features; accept and reject, and the list is made anew.
import { request } from "./api.js";
import { el, empty, notice, percent } from "./dom.js";

export async function suggest(view, query) {
  const observed = query.getAll("with"), rejected = query.getAll("without");
  const names = el("datalist", { id: "names" });
  const input = el("input", { list: "names", placeholder: "type a feature", autocomplete: "off" });
  input.setAttribute("list", "names");
  const given = el("ul", { className: "chips", "aria-label": "Given" }), refused = el("ul", { className: "chips", "aria-label": "Rejected" });
  const found = el("div", { "aria-live": "polite" });
  let rows = [];
  const add = el("form", { className: "tools add" }, el("label", { className: "grow" }, "Feature", input), el("button", { className: "main" }, "Add"), names);
  const take = el("p", { className: "actions", hidden: true }, el("button", { onclick: copy }, "Copy"), " ", el("button", { onclick: save }, "Export CSV"));
  view.replaceChildren(el("h2", {}, "What goes with …"), add, given, refused, found, take);

  function chips(list, box, label) {
    box.replaceChildren(...list.map(name => el("li", {}, label + name,
      el("button", { "aria-label": "Remove " + name, onclick: () => { list.splice(list.indexOf(name), 1); ask(); } }, "×"))));
  }
  async function ask() {
    take.hidden = true;
    chips(observed, given, ""); chips(rejected, refused, "not ");
    const link = new URLSearchParams([...observed.map(name => ["with", name]), ...rejected.map(name => ["without", name])]);
    history.replaceState(null, "", "#/suggest" + (link.size ? "?" + link : ""));
    if (!observed.length) { rows = []; return found.replaceChildren(empty("Add a feature that is there already; suggestions appear here.")); }
    try {
      rows = (await request("/suggest", { observed, rejected, n: 20 })).suggestions;
      take.hidden = !rows.length;
      found.replaceChildren(...(rows.length ? rows.map(one) : [empty("Nothing goes with these.")]));
    } catch (error) { rows = []; found.replaceChildren(el("p", { className: "empty error" }, error.message)); }
  }
  function one(row) {
    const fill = el("div", { className: "fill" });
    fill.style.width = 100 * row.probability + "%";
    const take = list => { list.push(row.feature); ask(); };
    return el("div", { className: "suggestion" }, el("b", {}, row.feature), el("div", { className: "track" }, fill), el("span", { className: "num" }, percent(row.probability)),
      el("span", { className: "choose" }, el("button", { "aria-label": "Accept " + row.feature, onclick: () => take(observed) }, "Accept"), " ",
        el("button", { "aria-label": "Reject " + row.feature, onclick: () => take(rejected) }, "Reject")),
      el("p", { className: "soft" }, ...reasons(row.reasons)));
  }
  // Where the number comes from: clusters and their parts of it, and the given features that led to them.
  function reasons(list) {
    if (list.some(reason => reason.cluster === undefined)) return [list.map(reason => Object.values(reason).join(" ")).join("; ")];
    const led = [...new Set(list.flatMap(reason => reason.because))];
    return ["from ", ...list.flatMap((reason, at) => [at ? ", " : "", reason.cluster < 0 ? reason.name : el("a", { href: "#/explore?cluster=" + reason.cluster }, reason.name), " " + percent(reason.share)]),
      led.length ? "; because of " + led.join(", ") : ""];
  }
  async function copy() {
    const text = [...observed, ...rows.map(row => row.feature)].join("\n");
    try { await navigator.clipboard.writeText(text); notice("Copied."); } catch { notice("The browser does not allow copying here."); }
  }
  function save() {
    const quote = text => '"' + (/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""') + '"';
    const text = "feature,probability\r\n" + rows.map(row => quote(row.feature) + "," + row.probability).join("\r\n");
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: "suggestions.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  }
  let typing;
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      if (!input.value) return;
      try {
        const { features } = await request("/complete?letters=" + encodeURIComponent(input.value));
        names.replaceChildren(...features.map(value => el("option", { value })));
      } catch { names.replaceChildren(); }
    }, 120);
  });
  add.addEventListener("submit", event => {
    event.preventDefault();
    const name = input.value.trim();
    if (name && !observed.includes(name)) observed.push(name);
    input.value = "";
    ask();
  });
  await ask();
  input.focus();
  return {};
}
