// The gallery that can be asked, and the choice of methods and measures. Without it the page still reads.
{
const source = document.getElementById("data");
const data = source ? JSON.parse(source.textContent) : null;
const make = (tag, options = {}, ...children) => {
  const { text, ...rest } = options;
  const made = Object.assign(document.createElement(tag), rest);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
};
const named = (element, name) => { element.setAttribute("aria-label", name); return element; };
// A name may break after an underscore, and nowhere else.
const broken = (tag, text, options = {}) => make(tag, options, ...text.split(/(?<=_)/).flatMap((part, at) => at ? [make("wbr"), part] : [part]));
const shown = (value) => value === undefined ? "" : (+value.toPrecision(3)).toString().replace("-", "\u2212");

// The first table: a cell says in full what stands behind its mark.
const note = document.getElementById("cell-note");
for (const button of document.querySelectorAll(".answers button")) {
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll(".answers button")) other.setAttribute("aria-pressed", String(other === button));
    note.textContent = button.dataset.note;
  });
}

// A place on the page that lies in a fold is unfolded when a link leads there.
const unfold = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
};
addEventListener("hashchange", unfold);

if (data) {
const host = document.getElementById("explorer");
const pictures = data.pictures, methods = data.methods, metrics = data.metrics;
const image = (uri) => new Promise((done) => { const one = new Image(); one.onload = () => done(one); one.onerror = () => done(null); one.src = uri; });
const png = (text) => `data:image/png;base64,${text}`, jpeg = (text) => `data:image/jpeg;base64,${text}`;
const cache = new Map();
const pixels = (key, uri, width, height) => {
  const name = `${key} ${width}x${height}`;
  if (!cache.has(name)) cache.set(name, image(uri).then((one) => {
    const canvas = make("canvas", { width: width ?? one.width, height: height ?? one.height });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingEnabled = width !== undefined && key[0] === "p";
    pen.drawImage(one, 0, 0, canvas.width, canvas.height);
    return pen.getImageData(0, 0, canvas.width, canvas.height);
  }));
  return cache.get(name);
};

// The colour rule of the page: over the lightened grey picture, warm for the class, cold against it.
const WARM = [[255, 214, 140], [249, 150, 60], [221, 74, 30], [138, 16, 28]];
const COLD = [[170, 214, 242], [92, 164, 222], [32, 104, 186], [14, 44, 116]];
const ramp = (stops, strength, channel) => {
  const at = strength * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low][channel] + (at - low) * (stops[low + 1][channel] - stops[low][channel]);
};
const level = (value) => Math.max(-1, Math.min(1, (value - 128) / 124));
async function paint(canvas, at, method) {
  const picture = pictures[at], map = await pixels(`m${at}.${method}`, png(picture.maps[method].png));
  const width = canvas.width = Math.max(map.width, 160), height = canvas.height = Math.round(width * map.height / map.width);
  const photo = await pixels(`p${at}`, jpeg(picture.photo), width, height);
  const out = new ImageData(width, height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const to = 4 * (y * width + x), from = 4 * (Math.floor(y * map.height / height) * map.width + Math.floor(x * map.width / width));
    const grey = 0.299 * photo.data[to] + 0.587 * photo.data[to + 1] + 0.114 * photo.data[to + 2];
    const paper = 96 + grey * 159 / 255, heat = level(map.data[from]), strength = Math.abs(heat);
    const alpha = 0.92 * Math.min(1, 1.35 * strength);
    for (let channel = 0; channel < 3; channel++)
      out.data[to + channel] = (1 - alpha) * paper + alpha * ramp(heat < 0 ? COLD : WARM, strength, channel);
    out.data[to + 3] = 255;
  }
  canvas.getContext("2d").putImageData(out, 0, 0);
  canvas.onpointermove = (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / box.width * map.width), row = Math.floor((event.clientY - box.top) / box.height * map.height);
    if (column < 0 || row < 0 || column >= map.width || row >= map.height) return;
    const heat = level(map.data[4 * (row * map.width + column)]);
    canvas.title = `${methods[method].name}: ${shown(heat * picture.maps[method].top)} here (${shown(100 * heat)} % of its full colour)`;
  };
}

// What was chosen. Names go by position in the data.
const chosen = new Set(methods.keys());
for (const [at, method] of methods.entries()) if (method.control) chosen.delete(at);
const measures = new Set(metrics.keys());
const places = [...new Set(pictures.map((one) => one.where))];
const state = { where: "", order: "given", method: [...chosen][0] ?? 0, metric: Math.max(0, metrics.findIndex((one) => one.main)), only: "all", most: 3 };

const select = (label, options, value, change) => {
  const field = make("select", {}, ...options.map(([key, text]) => make("option", { value: key, text })));
  field.value = value;
  field.addEventListener("change", () => { change(field.value); draw(); });
  named(field, label);
  return make("label", {}, make("span", { text: label }), field);
};
const scored = (picture) => {
  const found = picture.scores[state.metric]?.[state.method];
  return found === undefined ? undefined : metrics[state.metric].higher ? found : -found;
};
const listed = () => {
  let found = [...pictures.keys()].filter((at) => !state.where || pictures[at].where === state.where);
  if (state.only === "wrong") found = found.filter((at) => pictures[at].right === false);
  if (state.only === "right") found = found.filter((at) => pictures[at].right === true);
  const by = { apart: (at) => -pictures[at].apart, worst: (at) => scored(pictures[at]) ?? Infinity, best: (at) => -(scored(pictures[at]) ?? -Infinity) }[state.order];
  return by ? found.sort((a, b) => by(a) - by(b) || a - b) : found;
};

const rows = make("div", { className: "asked" }), count = make("p", { className: "note" });
count.setAttribute("role", "status");
const tile = (at, method, large = false) => {
  const canvas = named(make("canvas", {}), `Heatmap of ${methods[method].name}`);
  canvas.setAttribute("role", "img");
  const score = pictures[at].scores[state.metric]?.[method];
  // In large every score stands below.
  const caption = make("figcaption", {}, broken("b", methods[method].name, { title: methods[method].label }), ...(large ? [] : [make("span", { text: shown(score), title: metrics[state.metric].name })]));
  const figure = make("figure", { className: methods[method].control ? "control" : "" }, canvas, caption);
  paint(canvas, at, method);
  if (large) figure.append(make("p", { className: "all-scores", text: metrics.map((one, which) => [one.name, pictures[at].scores[which]?.[method], which]).filter(([, value, which]) => value !== undefined && measures.has(which)).map(([name, value]) => `${name} ${shown(value)}`).join(" · ") }));
  return figure;
};
const answered = (picture) => picture.right === null ? "" : picture.right ? "classified correctly" : `classified wrongly as ${picture.predicted}`;
function draw() {
  const found = listed(), few = found.slice(0, state.most);
  rows.replaceChildren(...few.map((at) => {
    const picture = pictures[at];
    const photo = make("img", { src: jpeg(picture.photo), alt: `The image ${picture.id}` });
    const name = make("span", { className: "about-picture" }, make("b", { text: picture.target }), make("small", { text: [picture.id.split("/").at(-1), places.length > 1 ? picture.where : "", answered(picture), state.order === "apart" ? `disagreement ${shown(picture.apart)}` : ""].filter(Boolean).join(" · ") }));
    const open = make("button", { type: "button", className: "open" }, photo, name);
    open.addEventListener("click", () => show(at));
    const maps = [...chosen].filter((method) => picture.maps[method]).sort((a, b) => a - b).map((method) => {
      const figure = tile(at, method);
      figure.addEventListener("click", () => show(at));
      return figure;
    });
    const strip = named(make("div", { className: "maps", tabIndex: 0 }, ...maps), `Heatmaps of ${picture.id}`);
    strip.setAttribute("role", "group");
    return make("div", { className: "asked-row" }, open, strip);
  }));
  count.textContent = `${few.length} of ${found.length} picture${found.length === 1 ? "" : "s"}` + (data.left ? `; ${data.left} further ones are kept by the run, and not in this page` : "") + (chosen.size ? "." : "; no method is chosen.");
  more.hidden = found.length <= state.most;
}
const more = make("button", { type: "button", className: "quiet", text: "Show more" });
more.addEventListener("click", () => { state.most += 6; draw(); });

// Methods and measures of the whole page.
const strip = (text) => text.replace(/[°‡*]+$/, "").replace(/ [↑↓]$/, "").trim();
const title_of = (head) => {
  const alone = head.cloneNode(true);
  for (const beside of alone.querySelectorAll("span, abbr")) beside.remove();
  return strip(alone.textContent);
};
function apply() {
  const gone = new Set(methods.filter((_, at) => !chosen.has(at) && !(methods[at].control && untouched.has(at))).map((one) => one.name));
  for (const row of document.querySelectorAll("tbody tr")) {
    const head = row.querySelector("th[scope=row]");
    if (head) row.hidden = gone.has(row.dataset.method ?? title_of(head));
  }
  for (const figure of document.querySelectorAll("figure[data-method]")) figure.hidden = gone.has(figure.dataset.method);
  const silent = new Set(metrics.filter((_, at) => !measures.has(at)).map((one) => one.name));
  for (const block of document.querySelectorAll(".card, .metric")) {
    const head = block.querySelector("h3");
    if (head) block.hidden = silent.has(title_of(head));
  }
  for (const fold of document.querySelectorAll("main details details")) {
    const name = strip(fold.querySelector("summary").textContent);
    if (metrics.some((one) => one.name === name)) fold.hidden = silent.has(name);
  }
  for (const table of document.querySelectorAll("table.board")) [...table.tHead.rows[0].cells].forEach((head, column) => {
    const hide = silent.has(strip(head.textContent));
    for (const row of table.rows) row.cells[column].hidden = hide;
  });
  draw();
}
const untouched = new Set(methods.keys());
addEventListener("click", (event) => { for (const fold of document.querySelectorAll(".choose[open]")) if (!fold.contains(event.target)) fold.open = false; });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const fold of document.querySelectorAll(".choose[open]")) { fold.open = false; fold.firstChild.focus(); }
});
const boxes = (title, list, set, touched) => {
  const made = list.map((one, at) => {
    const box = make("input", { type: "checkbox", checked: set.has(at) });
    box.addEventListener("change", () => { box.checked ? set.add(at) : set.delete(at); touched?.delete(at); apply(); });
    return make("label", { title: one.label ?? one.name }, box, make("span", { text: one.name }));
  });
  const every = make("button", { type: "button", className: "quiet", text: "all" }), none = make("button", { type: "button", className: "quiet", text: "none" });
  const set_all = (on) => { for (const [at, label] of made.entries()) { label.firstChild.checked = on; on ? set.add(at) : set.delete(at); touched?.delete(at); } apply(); };
  every.addEventListener("click", () => set_all(true)); none.addEventListener("click", () => set_all(false));
  return make("details", { className: "choose" }, make("summary", { text: title }), make("div", {}, ...made, every, none));
};

// One picture in large: all heatmaps, its curves, and the flip-book.
const dialog = make("dialog", {});
let open_at = -1;
function show(at) {
  open_at = at;
  const picture = pictures[at];
  const close = named(make("button", { type: "button", className: "quiet", text: "Close" }), "Close");
  close.addEventListener("click", () => dialog.close());
  const step = (text, by, name) => {
    const button = named(make("button", { type: "button", className: "quiet", text }), name);
    button.addEventListener("click", () => move(by));
    return button;
  };
  const title = make("h2", { text: picture.target, id: "opened" });
  const about = make("p", { className: "note", id: "opened-about", text: [picture.id, picture.where, answered(picture), `disagreement between methods ${shown(picture.apart)}`].filter(Boolean).join(" · ") });
  const head = make("div", { className: "dialog-head" }, title, make("div", { className: "turn" }, step("‹", -1, "Previous picture"), step("›", 1, "Next picture"), close));
  const large = make("div", { className: "large" }, ...[...methods.keys()].filter((method) => picture.maps[method]).map((method) => {
    const figure = tile(at, method, true);
    figure.hidden = !chosen.has(method) && !(methods[method].control && untouched.has(method));
    return figure;
  }));
  const focused = dialog.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  dialog.replaceChildren(head, about, make("div", { className: "dialog-body" }, flips(at), large));
  if (!dialog.open) dialog.showModal();
  ([...dialog.querySelectorAll("button")].find((one) => focused !== null && one.getAttribute("aria-label") === focused) ?? close).focus();
  dialog.scrollTop = 0;
}
function move(by) {
  const found = listed(), next = found[(found.indexOf(open_at) + by + found.length) % found.length];
  if (next !== undefined) show(next);
}
dialog.addEventListener("keydown", (event) => {
  if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
  if (event.key === "ArrowRight") move(1);
  if (event.key === "ArrowLeft") move(-1);
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.setAttribute("aria-labelledby", "opened");

const SVG = "http://www.w3.org/2000/svg";
const drawn = (tag, attributes) => { const one = document.createElementNS(SVG, tag); for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value); return one; };
function flips(at) {
  const picture = pictures[at];
  const books = [...methods.keys()].flatMap((method) => (picture.flips[method] ?? []).filter((book) => book.hidden || book.f).map((book) => ({ method, ...book })));
  const curved = Object.entries(picture.curves).filter(([, by]) => Object.keys(by).length).map(([which]) => +which);
  const box = make("section", { className: "flip" });
  if (!curved.length) return box;
  const book_metrics = [...new Set(books.map((book) => book.m))];
  const start = book_metrics.length ? book_metrics[0] : curved[0];
  const canvas = named(make("canvas", {}), "The picture as the model saw it"); canvas.setAttribute("role", "img");
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const slider = named(make("input", { type: "range", min: 0, value: 0 }), "Share of the picture that is gone");
  const words = make("p", { className: "answer-now" }); words.setAttribute("aria-live", "polite");
  const chart = drawn("svg", { viewBox: "0 0 320 150", class: "chart", role: "img" });
  const choice = (label, options, value) => { const field = make("select", {}, ...options.map(([key, text]) => make("option", { value: key, text }))); field.value = value; named(field, label); return [make("label", {}, make("span", { text: label }), field), field]; };
  const [metric_label, metric] = choice("Measure", curved.map((which) => [which, metrics[which].name]), start);
  const [method_label, method] = choice("Method", [...methods.keys()].filter((one) => picture.maps[one]).map((one) => [one, methods[one].name]), books[0]?.method ?? state.method);
  let ready = 0;
  async function turn() {
    const mine = ++ready, which = +metric.value, who = +method.value, by = picture.curves[which], curve = by[who];
    const book = books.find((one) => one.m === which && one.method === who);
    canvas.hidden = !book; slider.disabled = !curve;
    slider.max = curve ? curve[0].length - 1 : 0;
    const now = Math.min(+slider.value, +slider.max);
    slider.setAttribute("aria-valuetext", curve ? `${Math.round(100 * curve[0][now])} % gone, answer ${shown(curve[1][now])}` : "no curve");
    chart.setAttribute("aria-label", `Curves of ${metrics[which].name} on this picture`);
    const all = Object.values(by).flatMap((one) => one[1]), low = Math.min(0, ...all), high = Math.max(...all, low + 1e-9);
    const px = (x) => 30 + 284 * x, py = (y) => 134 - 124 * (y - low) / (high - low);
    const tick = (x, y, text, anchor) => { const one = drawn("text", { x, y, class: "tick", "text-anchor": anchor }); one.textContent = text; return one; };
    chart.replaceChildren(drawn("path", { d: `M30 ${py(0)}H314`, class: "grid" }), tick(26, py(high) + 3, shown(high), "end"), tick(26, py(0) + 3, "0", "end"), tick(30, 148, "0 %", "middle"), tick(172, 148, "gone", "middle"), tick(314, 148, "100 %", "end"), ...Object.entries(by).filter(([one]) => +one === who || (chosen.has(+one))).map(([one, [x, y]]) => drawn("polyline", { points: x.map((value, k) => `${px(value).toFixed(1)},${py(y[k]).toFixed(1)}`).join(" "), class: +one === who ? "line now" : "line other" })), ...(curve ? [drawn("path", { d: `M${px(curve[0][now])} 10V134`, class: "reference" }), drawn("circle", { cx: px(curve[0][now]), cy: py(curve[1][now]), r: 4, class: "dot" })] : []));
    if (!curve) { words.textContent = `${metrics[which].name} has no curve of ${methods[who].name} on this picture.`; return; }
    const answer = `${Math.round(100 * curve[0][now])} % gone · ${metrics[which].answer}: ${shown(curve[1][now])}`;
    if (!book) { words.textContent = `${answer}. What the model saw was not kept for this measure, method or picture.`; return; }
    const [w, h] = picture.size, share = Math.min(1, 224 / Math.max(w, h)), width = Math.round(w * share), height = Math.round(h * share);
    if (book.f) {
      // Steps between two frames show the nearest one, and say so.
      const nearest = book.at.reduce((best, step, k) => Math.abs(step - now) < Math.abs(book.at[best] - now) ? k : best, 0);
      const page = await image(jpeg(book.f[nearest]));
      if (mine !== ready) return;
      canvas.width = page.width; canvas.height = page.height;
      pen.drawImage(page, 0, 0);
      words.textContent = book.at[nearest] === now ? answer : `${answer}. The picture is that of ${Math.round(100 * curve[0][Math.min(book.at[nearest], +slider.max)])} %.`;
      return;
    }
    const photo = await pixels(`p${at}`, jpeg(picture.photo), width, height), gone = await pixels(`g${at}.${who}.${which}`, png(book.gone), width, height);
    const filling = typeof book.hidden === "string" ? await pixels(`ph${at}.${who}.${which}`, jpeg(book.hidden), width, height) : null;
    if (mine !== ready) return;
    const out = new ImageData(width, height);
    for (let k = 0; k < width * height; k++) {
      const step = gone.data[4 * k], away = step > 0 && step <= now;
      for (let channel = 0; channel < 3; channel++) out.data[4 * k + channel] = !away ? photo.data[4 * k + channel] : filling ? filling.data[4 * k + channel] : book.hidden[channel];
      out.data[4 * k + 3] = 255;
    }
    canvas.width = width; canvas.height = height;
    pen.putImageData(out, 0, 0);
    words.textContent = answer;
  }
  slider.addEventListener("input", turn); metric.addEventListener("change", turn); method.addEventListener("change", turn);
  box.append(make("h3", { text: books.length ? "As the model saw it" : "Its curves" }), make("div", { className: "ask-bar" }, method_label, metric_label), canvas, slider, words, chart);
  turn();
  return box;
}

const bar = make("div", { className: "ask-bar" },
  boxes("Methods", methods, chosen, untouched), boxes("Measures", metrics, measures),
  ...(places.length > 1 ? [select("Model and data", [["", "all"], ...places.map((one) => [one, one])], "", (value) => { state.where = value; })] : []),
  select("Sort", [["given", "as judged"], ["apart", "methods disagree most"], ["worst", "worst score first"], ["best", "best score first"]], "given", (value) => { state.order = value; }),
  select("Score of", methods.map((one, at) => [at, one.name]), state.method, (value) => { state.method = +value; }),
  select("under", metrics.map((one, at) => [at, one.name]), state.metric, (value) => { state.metric = +value; }),
  ...(pictures.some((one) => one.right !== null) ? [select("Show", [["all", "all pictures"], ["wrong", "misclassified"], ["right", "classified correctly"]], "all", (value) => { state.only = value; })] : []));
host.append(bar, rows, count, more);
host.hidden = false;
document.body.append(dialog);
draw();
}
unfold();
}
