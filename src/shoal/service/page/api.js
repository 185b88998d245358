// Requests to the service. If it asks for a token, so do we; the token stays in this tab.
import { ask } from "./dom.js";

const sentence = text => text.charAt(0).toUpperCase() + text.slice(1);

export async function request(path, body) {
  for (;;) {
    const headers = { "Content-Type": "application/json" };
    const token = sessionStorage.getItem("token");
    if (token) headers.Authorization = "Bearer " + token;
    const answer = await fetch(path, body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) });
    if (answer.status === 401) {
      const given = await ask("This service asks for a token", "Token", "", "Use", "password");
      if (given === null) throw new Error("A token is needed.");
      sessionStorage.setItem("token", given.trim());
      continue;
    }
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error ? sentence(value.error.message) : "The service refused the request.");
    return value;
  }
}

// Server-sent events over fetch, which can carry a token. Calls back until the signal says stop; connects again.
export async function listen(after, signal, onMessage, onState) {
  while (!signal.aborted) {
    try {
      const token = sessionStorage.getItem("token");
      const headers = token ? { Authorization: "Bearer " + token } : {};
      const answer = await fetch("/events/stream" + (after === null ? "" : "?after=" + after), { headers, signal });
      if (!answer.ok) throw new Error(sentence((await answer.json()).error.message));
      onState("");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const name = /^event: (.*)$/m.exec(part), data = /^data: (.*)$/m.exec(part);
          if (!name || !data) continue;
          const parsed = JSON.parse(data[1]);
          if (name[1] === "event") after = parsed.event;
          onMessage(name[1], parsed);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      onState("Not connected: " + error.message + " Trying again …");
    }
    await new Promise(resolve => setTimeout(resolve, 2000));
  }
}
