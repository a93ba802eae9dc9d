// The page for people: topics, a filter to try, and events as they come. No library, no other host.
const MOST_SHOWN = 200;
const PAUSE = 250; // milliseconds without a key before a filter is checked

const at = (id) => document.getElementById(id);
let topic = null;
let watching = null; // AbortController of the stream
let checking = 0;

function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

async function ask(path, body) {
  const asked = body === undefined
    ? { headers: headers() }
    : { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) };
  const answer = await fetch(path, asked);
  const content = await answer.json();
  if (answer.status === 401) at("who").hidden = false;
  if (!answer.ok) throw Object.assign(new Error(content.message), content);
  return content;
}

const path = (...parts) => "/topics/" + [topic.name, ...parts].map(encodeURIComponent).join("/");

function show(problem) {
  at("problem").hidden = !problem;
  at("problem").textContent = problem ? problem.message : "";
}

async function list() {
  try {
    const { topics } = await ask("/topics");
    show(null);
    at("none").hidden = topics.length > 0;
    at("topics").replaceChildren(...topics.map((one) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.textContent = one.name;
      if (topic && topic.name === one.name) button.setAttribute("aria-current", "true");
      button.onclick = () => choose(one);
      item.append(button);
      return item;
    }));
  } catch (problem) { show(problem); }
}

async function choose(one) {
  stop();
  topic = one;
  at("topic").hidden = false;
  at("why").hidden = true;
  at("events").replaceChildren();
  at("name").textContent = one.name;
  at("about").textContent =
    `${one.next_offset - one.first_offset} events (offsets ${one.first_offset} to ${one.next_offset}), ` +
    `${one.subscriptions} durable subscriptions, semantics ${one.semantics}`;
  at("schema").replaceChildren(...Object.entries(one.schema).map(([name, type]) => {
    const row = document.createElement("tr");
    for (const text of [name, type]) row.append(Object.assign(document.createElement("td"), { textContent: text }));
    return row;
  }));
  await Promise.all([list(), check()]);
}

async function check() {
  const turn = ++checking;
  const verdict = at("verdict");
  try {
    const answer = await ask(path("check"), { filter: at("filter").value });
    if (turn !== checking) return;
    verdict.className = "";
    verdict.textContent = "is read as  " + (answer.narrowed ?? answer.filter);
  } catch (problem) {
    if (turn !== checking) return;
    verdict.className = "wrong";
    verdict.textContent = problem.message;
  }
}

function stop() {
  if (watching) watching.abort();
  watching = null;
  at("watch").textContent = "Watch";
  at("state").textContent = "";
}

async function watch() {
  stop();
  const mine = watching = new AbortController();
  at("watch").textContent = "Stop";
  at("events").replaceChildren();
  at("why").hidden = true;
  const filter = at("filter").value;
  const query = new URLSearchParams({ filter, from: at("from").value });
  try {
    const answer = await fetch(`${path("live")}?${query}`, { headers: headers(), signal: mine.signal });
    if (!answer.ok) throw new Error((await answer.json()).message);
    at("state").textContent = "watching";
    for await (const message of messages(answer.body)) take(message, filter);
    at("state").textContent = "the broker ended the connection";
  } catch (problem) {
    if (problem.name === "AbortError") return;
    at("state").textContent = problem.message;
  }
  if (watching === mine) watching = null;
  at("watch").textContent = "Watch";
}

async function* messages(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      const kind = lines.find((line) => line.startsWith("event: "));
      if (data.length) yield { kind: kind ? kind.slice(7) : "message", content: JSON.parse(data.join("\n")) };
    }
  }
}

function take({ kind, content }, filter) {
  if (kind !== "message") {
    at("state").textContent = kind === "closed" ? content.reason : `${content[kind]} events ${kind}`;
    return;
  }
  const item = document.createElement("li");
  item.className = "event";
  item.title = "Why does it match?";
  item.append(Object.assign(document.createElement("b"), { textContent: content.offset }));
  item.append(JSON.stringify(content.event));
  item.onclick = () => why(content.offset, filter);
  at("events").prepend(item);
  if (at("events").childElementCount > MOST_SHOWN) at("events").lastElementChild.remove();
}

async function why(offset, filter) {
  const shown = at("why");
  try {
    const { root } = await ask(path("why"), { filter, offset });
    shown.textContent = `offset ${offset}\n` + steps(root, 0).join("\n");
  } catch (problem) { shown.textContent = problem.message; }
  shown.hidden = false;
  shown.scrollIntoView({ block: "nearest" });
}

function steps(step, depth) {
  const values = Object.entries(step.values ?? {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const line = `${String(step.truth).padEnd(6)} ${"  ".repeat(depth)}${step.text}   ${values.join(", ")}`;
  return [line, ...(step.parts ?? []).flatMap((part) => steps(part, depth + 1))];
}

let timer = null;
at("filter").oninput = () => { clearTimeout(timer); timer = setTimeout(check, PAUSE); };
at("try").onsubmit = (event) => { event.preventDefault(); if (watching) stop(); else watch(); };
at("who").onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
  at("who").hidden = true;
  list();
};
list();
