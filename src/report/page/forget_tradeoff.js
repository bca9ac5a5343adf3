/* Every run as a mark: how little it is above the best loss on the new domains (to the right: learned more) and what it forgot of
 * those before (down: less). The mean of a config is a large mark with its spread; a dashed line joins random choice and all nodes. */
const isPlaced = r => r.done && known(r.new_loss) && known(r.forgotten_nats);
const tradeoffConfigs = data.configs.map((c, i) => ({c, i, runs: c.runs.filter(isPlaced)})).filter(d => d.runs.length);
const tradeoffRuns = [].concat(...tradeoffConfigs.map(d => d.runs.map(r => ({d, r}))));

function tradeoffScales(width, height, margin) {
  const span = (key, least) => {
    const [low, high] = d3.extent(tradeoffRuns, m => m.r[key]), pad = Math.max((high - low) * 0.12, least);
    return [low - pad, high + pad];
  };
  const [worst, first] = span("new_loss", 0.01).reverse();
  return {x: d3.scaleLinear().domain([worst, first]).nice().range([margin.left, width - margin.right]),
          y: d3.scaleLinear().domain(span("forgotten_nats", 0.01)).nice().range([height - margin.bottom, margin.top])};
}

function tradeoffAxes(svg, {x, y}, width, height, margin) {
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(3, width / 130)));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(6));
  svgText(svg, "axis-label", width - margin.right, height - 4, "end", `loss on the new domains, ${aboveWords()}; learned more →`);
  svgText(svg, "axis-label", 4, 12, "start", "forgotten, nats; less ↓");
  if (y.domain()[0] < 0 && y.domain()[1] > 0) svgLine(svg, "step-line", margin.left, y(0), width - margin.right, y(0));
}

const meanAt = (d, {x, y}) => [x(d.c.new_loss.mean), y(d.c.forgotten_nats.mean)];

/* What choosing more or fewer nodes at random trades, if it is a straight line. */
function tradeoffLine(svg, scales) {
  for (const v of data.verdicts) {
    const ends = [v.random, v.all].map(name => tradeoffConfigs.find(d => d.c.name === name));
    if (ends[0] && ends[1]) svgLine(svg, "ceiling cache", ...meanAt(ends[0], scales), ...meanAt(ends[1], scales));
  }
}

function tradeoffSpread(svg, d, {x, y}) {
  const {new_loss: a, forgotten_nats: b} = d.c, color = paint(configColor(d.i));
  if (!known(a.sd) || !known(b.sd)) return;
  svgLine(svg, "spread", x(a.mean - a.sd), y(b.mean), x(a.mean + a.sd), y(b.mean)).style("stroke", color);
  svgLine(svg, "spread", x(a.mean), y(b.mean - b.sd), x(a.mean), y(b.mean + b.sd)).style("stroke", color);
}

/* Names beside the means, moved down where two would overlap. */
function tradeoffNames(svg, scales, width) {
  const placed = [];
  const order = tradeoffConfigs.map(d => ({d, at: meanAt(d, scales)})).sort((p, q) => p.at[1] - q.at[1]);
  for (const {d, at} of order) {
    const left = at[0] + 12 + 6.8 * nameOf(d.c.name).length > width;
    let y = at[1] - 10;
    while (placed.some(p => Math.abs(p.y - y) < 13 && Math.abs(p.x - at[0]) < 170)) y += 4;
    placed.push({x: at[0], y});
    svgText(svg, "mark-name", at[0] + (left ? -12 : 12), y, left ? "end" : "start", nameOf(d.c.name));
  }
}

function runRows(d, r) {
  return [["choice", choiceWords(d.c)], [`loss on the new domains, ${aboveWords()}`, nats(r.new_loss)],
          ["learned since before training", nats(r.learned)], ["forgotten", nats(r.forgotten_nats)],
          ["forgotten, percent of perplexity", percentOf(r.forgotten_percent)], [`all domains in the end, ${aboveWords()}`, nats(r.end_loss)]];
}

/* The mark nearest to the mouse, or the next one by an arrow key. */
function tradeoffHover(svg, marks, {x, y}) {
  const list = tradeoffRuns;
  let at = -1;
  const away = (m, px, py) => Math.hypot(x(m.r.new_loss) - px, y(m.r.forgotten_nats) - py);
  const show = (m, where) => {
    marks.classed("on", o => m && o.r === m.r);
    if (!m) return hideTip();
    showTip(`${nameOf(m.d.c.name)}, seed ${m.r.seed}`, runRows(m.d, m.r), where);
  };
  svg.on("mousemove", () => {
    const [mx, my] = d3.mouse(svg.node()), near = list[d3.scan(list, (a, b) => away(a, mx, my) - away(b, mx, my))];
    show(near && away(near, mx, my) < 24 ? near : null, pointer());
  }).on("mouseleave blur", () => show(null)).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[d3.event.key];
    if (!step || !list.length) return;
    d3.event.preventDefault();
    at = (at + step + list.length) % list.length;
    show(list[at], pointIn(svg.node(), x(list[at].r.new_loss), y(list[at].r.forgotten_nats)));
  });
}

function tradeoffMarks(svg, scales) {
  const place = r => `translate(${scales.x(r.new_loss)},${scales.y(r.forgotten_nats)})`;
  const marks = svg.append("g").selectAll("path").data(tradeoffRuns).enter().append("path").attr("class", "dot run")
    .attr("d", m => configSymbol(m.d.i, 46)).attr("transform", m => place(m.r)).style("fill", m => paint(configColor(m.d.i)));
  svg.append("g").selectAll("path").data(tradeoffConfigs).enter().append("path").attr("class", "mean").attr("d", d => configSymbol(d.i, 190))
    .attr("transform", d => `translate(${meanAt(d, scales)})`).style("fill", d => paint(configColor(d.i)));
  return marks;
}

function drawTradeoff(box, width) {
  const height = Math.round(Math.max(320, Math.min(520, width * 0.52))), margin = {top: 26, right: width > 600 ? 120 : 16, bottom: 40, left: 52};
  const svg = chart(box, width, height, `Learned against forgotten, ${many(tradeoffRuns.length, "run")}; arrow keys step through them`);
  const scales = tradeoffScales(width, height, margin);
  tradeoffAxes(svg, scales, width, height, margin);
  tradeoffLine(svg, scales);
  tradeoffConfigs.forEach(d => tradeoffSpread(svg, d, scales));
  const marks = tradeoffMarks(svg, scales);
  tradeoffNames(svg, scales, width);
  tradeoffHover(svg, marks, scales);
}

function tradeoffLegend(to) {
  const li = to.append("ul").attr("class", "legend").selectAll("li").data(tradeoffConfigs).enter().append("li");
  li.append("svg").attr("width", 14).attr("height", 14).attr("viewBox", "-8 -8 16 16").attr("aria-hidden", "true").append("path")
    .attr("d", d => configSymbol(d.i, 90)).style("fill", d => paint(configColor(d.i)));
  li.append("span").text(d => nameOf(d.c.name));
  li.append("span").attr("class", "muted").text(d => choiceWords(d.c));
}

function tradeoff() {
  const to = part("tradeoff");
  note(to, "A small mark is a run, a large one the mean of its config, with one standard deviation over seeds. Who updates less forgets less " +
    "and learns less: only a config that is further down at the same place from left to right is better. The dashed line joins random choice and " +
    "all nodes.");
  if (!tradeoffConfigs.length) {
    note(to, data.domains.length === 1 ? "There is one domain: nothing can be forgotten." : "No run is done.");
    return;
  }
  const box = to.append("div").attr("class", "tradeoff");
  whenSized(box.node(), width => drawTradeoff(box, width));
  tradeoffLegend(to);
}
