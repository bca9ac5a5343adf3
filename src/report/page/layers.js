/* Self time by layer and kind of op, as a table whose cells are the darker the more time they hold. */
function layerTimes(ops) {
  const cells = new Map();
  for (const op of ops) {
    const key = op.layer + "/" + op.kind;
    cells.set(key, (cells.get(key) || 0) + op.self_us);
  }
  return cells;
}

function drawLayers(box, phase) {
  const ops = data.ops.filter(op => phase === "all" || op.phase === phase), cells = layerTimes(ops);
  const kinds = data.kinds.map(k => k.kind).filter(k => ops.some(op => op.kind === k));
  const layers = Array.from(new Set(ops.map(op => op.layer))).sort((a, b) => (a === null) - (b === null) || a - b);
  const most = d3.max(Array.from(cells.values())) || 1, unit = most >= 1e5 ? 1000 : 1;
  box.text("");
  note(box, `In ${unit === 1 ? "µs" : "ms"}:`);
  const table = box.append("table").attr("class", "heat");
  const head = table.append("thead").append("tr");
  head.append("th").attr("scope", "col").text("layer");
  head.selectAll("th.kind").data(kinds).enter().append("th").attr("class", "kind").attr("scope", "col")
    .append("span").text(nameOf);
  const row = table.append("tbody").selectAll("tr").data(layers).enter().append("tr");
  row.append("th").attr("scope", "row").text(l => l === null ? "outside" : l);
  const cell = row.selectAll("td").data(l => kinds.map(k => ({layer: l, kind: k, us: cells.get(l + "/" + k) || 0}))).enter()
    .append("td").classed("cell", d => d.us > 0).classed("strong", d => Math.sqrt(d.us / most) > 0.62)
    .style("background-color", d => d.us > 0 ? `rgba(var(--heat), ${0.08 + 0.92 * Math.sqrt(d.us / most)})` : null)
    .text(d => d.us > 0 ? plainNumber(d.us / unit) : "");
  withTip(cell.filter(d => d.us > 0), d => [nameOf(d.kind), [["layer", d.layer === null ? "outside the blocks" : d.layer],
    ["self time", time(d.us)], ["share of the step", percent(d.us / data.step.median_us)]]]);
}

function layers() {
  const to = part("layers");
  if (!data.ops.length) {
    note(to, "This profile has no ops.");
    return;
  }
  note(to, "Self time per layer and kind of op. Layers of one shape should look the same; one that does not is worth " +
    "a look.");
  const phases = Array.from(new Set(data.ops.map(op => op.phase)));
  const controls = to.append("div").attr("class", "controls");
  const box = to.append("div").attr("class", "scroll").attr("tabindex", 0).attr("role", "group")
   .attr("aria-label", "Heat map of layers and kinds");
  choose(controls, "Phase", [["all", "All"]].concat(phases.map(p => [p, p])), "all", phase => drawLayers(box, phase));
  drawLayers(box, "all");
}
