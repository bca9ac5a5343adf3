/* The page's data, and what every part of it uses: numbers as text, colours, controls, the tooltip. All text reaches the
 * page through .text(), so that no name in it can become markup. */
const data = JSON.parse(document.getElementById("report-data").textContent);
const part = id => d3.select("#" + id);
const nameOf = x => x || "(no name)";

/* ---- numbers; null is what could not be measured ---- */

const known = x => typeof x === "number" && isFinite(x);

function withUnit(x, units) {
  if (!known(x)) return "–";
  let i = 0;
  for (; Math.abs(x) >= 999.5 && i + 1 < units.length; i++) x /= 1000;
  return (i === 0 && Number.isInteger(x) ? String(x) : plainNumber(x)) + (units[i] ? "\u00a0" + units[i] : "");
}

function plainNumber(x) {
  if (!known(x)) return "–";
  const a = Math.abs(x);
  if (a >= 1e6) return x.toExponential(2);
  if (a > 0 && a < 0.01) return String(+x.toPrecision(2));
  return x.toFixed(a === 0 || a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

const time = us => withUnit(us, ["µs", "ms", "s"]);
const two = n => String(n).padStart(2, "0");
/* "12.3 ms", "12.3 s", "10:05 min", "2:03:04 h": how long something takes that people wait for. */
function seconds(s) {
  const whole = Math.round(s), minute = Math.floor(whole / 60);
  if (!known(s)) return "–";
  if (s !== 0 && s < 1) return time(s * 1e6);
  if (whole < 600) return plainNumber(s) + "\u00a0s";
  return whole < 3600 ? `${minute}:${two(whole % 60)}\u00a0min` : `${Math.floor(minute / 60)}:${two(minute % 60)}:${two(whole % 60)}\u00a0h`;
}
const bytes = b => withUnit(b, ["B", "kB", "MB", "GB", "TB"]);
const percent = share => known(share) ? (100 * share).toFixed(1) + "\u00a0%" : "–";
const times = x => known(x) ? x.toFixed(x < 9.995 ? 2 : 1) + "×" : "–";
const count = n => withUnit(n, ["", "k", "M", "G", "T", "P"]);
const across = x => Math.max(0, Math.min(100, 100 * x)) + "%";
const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

/* ---- colours are CSS variables, so that dark mode and print need no second drawing ---- */

const paint = variable => "var(" + variable + ")";
const resolved = variable => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

/* ---- small parts ---- */

function note(to, text) { return to.append("p").attr("class", "note").text(text); }

/* A row of buttons of which one is pressed. choices: [[value, label], ...] */
function choose(to, label, choices, chosen, change) {
  const group = to.append("span").attr("class", "buttons").attr("role", "group").attr("aria-label", label);
  const buttons = group.selectAll("button").data(choices).enter().append("button").attr("type", "button").text(c => c[1])
    .on("click", c => { press(c[0]); change(c[0]); });
  const press = value => buttons.attr("aria-pressed", c => c[0] === value);
  press(chosen);
}

/* items: [{name, color, more}] */
function legend(to, items) {
  const li = to.append("ul").attr("class", "legend").selectAll("li").data(items).enter().append("li");
  li.append("span").attr("class", "swatch").classed("hatched", d => d.hatched)
    .style("background-color", d => paint(d.color));
  li.append("span").text(d => d.name);
  li.filter(d => d.more).append("span").attr("class", "muted").text(d => d.more);
}

/* rows: [[label, text], ...] */
function facts(to, rows) {
  const list = to.append("dl").attr("class", "facts");
  for (const [label, text] of rows) {
    list.append("dt").text(label);
    list.append("dd").text(text === null || text === "" ? "–" : text);
  }
}

/* An empty chart that the keyboard can reach, in place of what was in the box. */
function chart(box, width, height, label) {
  box.text("");
  return box.append("svg").attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`)
    .attr("tabindex", 0).attr("role", "img").attr("aria-label", label);
}

function svgText(svg, style, x, y, anchor, text) {
  return svg.append("text").attr("class", style).attr("x", x).attr("y", y).attr("text-anchor", anchor).text(text);
}

function svgLine(svg, style, x1, y1, x2, y2) {
  return svg.append("line").attr("class", style).attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2);
}

/* Draws when the container has a width, and again when that changes. draw(width) */
function whenSized(node, draw) {
  let last = 0;
  const redraw = () => {
    const width = Math.floor(node.clientWidth);
    if (width > 0 && width !== last) draw(last = width);
  };
  new ResizeObserver(redraw).observe(node);
  redraw();
}

/* ---- the tooltip ---- */

/* rows: [[label, text], ...]; at: {x, y} in the window */
function showTip(title, rows, at) {
  const tip = part("tip").attr("hidden", null).text("");
  tip.append("b").text(String(title).length > 300 ? String(title).slice(0, 300) + "…" : title);
  const list = tip.append("dl");
  for (const [label, text] of rows) {
    list.append("dt").text(label);
    list.append("dd").text(text);
  }
  const box = tip.node().getBoundingClientRect();
  const left = at.x + 14 + box.width > innerWidth ? at.x - 14 - box.width : at.x + 14;
  const top = at.y + 14 + box.height > innerHeight ? at.y - 10 - box.height : at.y + 14;
  tip.style("left", Math.max(4, left) + "px").style("top", Math.max(4, top) + "px");
}

const hideTip = () => part("tip").attr("hidden", true);
const pointer = () => ({x: d3.event.clientX, y: d3.event.clientY});

/* A point of an element, for tooltips that the keyboard opens. */
function pointIn(node, x, y) {
  const box = node.getBoundingClientRect();
  return {x: box.left + x, y: box.top + y};
}

/* Opens the tooltip of whatever in `selection` the mouse is over. content(d) is [title, rows]. */
function withTip(selection, content) {
  selection.on("mousemove", d => showTip(...content(d), pointer())).on("mouseleave", hideTip);
}
