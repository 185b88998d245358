// Small helpers. Everything from data goes through textContent: a name can never become markup.
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}
// A name that may go on in the next line behind its punctuation, rather than within a word.
export const breakable = name => (String(name).match(/[\p{L}\p{N}\s([{]+[^\p{L}\p{N}\s([{]*|[^\p{L}\p{N}\s([{]+/gu) || []).flatMap((part, at) => at ? [document.createElement("wbr"), part] : [part]);
export const short = value => value === null || value === undefined ? "–"
  : value !== 0 && Math.abs(value) < .001 ? (value > 0 ? "< 0.001" : "> −0.001") : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3)).replace("-", "−");
export const percent = value => value === null ? "–" : value > 0 && value < .0001 ? "< 0.01 %" : (100 * value).toFixed(value < .01 ? 2 : 1) + " %";
export const when = seconds => seconds === null ? "–" : new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
export const duration = seconds => seconds < 5400 ? short(seconds / 60) + " min" : seconds < 172800 ? short(seconds / 3600) + " h" : short(seconds / 86400) + " days";
export const empty = text => el("p", { className: "empty" }, text);

let hiding;
export function notice(text, action) {
  const box = document.getElementById("notice");
  box.replaceChildren(text);
  if (action) box.append(el("button", { onclick: () => { box.hidden = true; action.run(); } }, action.label));
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.hidden = true; }, action ? 12000 : 6000);
}

// A question in a dialog; the promise holds what was written, or null.
export function ask(title, label, value = "", confirm = "Save", type = "text", more = () => null) {
  const dialog = document.getElementById("ask");
  const input = label ? el("input", { value, type, maxLength: 1000 }) : null;
  return new Promise(resolve => {
    const form = el("form", { method: "dialog" },
      el("h2", { id: "ask-title" }, title),
      more(input), input ? el("label", {}, label, input) : null,
      el("div", { className: "actions" },
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        el("button", { className: "main", type: "submit" }, confirm)));
    let answer = null;
    form.addEventListener("submit", () => { answer = input ? input.value : ""; });
    dialog.replaceChildren(form);
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}
