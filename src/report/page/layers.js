/* Self time by layer and kind of op, as a table whose cells are the darker the more time they hold; with the sums of rows and columns. */
const LAYER_KINDS = 12, OTHER_KINDS = "other kinds";

/* The kinds with the most time have columns of their own. */
function layerColumns(ops) {
  const kinds = data.kinds.map(k => k.kind).filter(k => ops.some(op => op.kind === k));
  return kinds.length <= LAYER_KINDS + 1 ? kinds : kinds.slice(0, LAYER_KINDS).concat(OTHER_KINDS);
}

/* Sums by "layer/kind"; "all" stands for every layer and every kind. */
function layerTimes(ops, columns) {
  const cells = new Map(), add = (layer, kind, us) => cells.set(layer + "/" + kind, (cells.get(layer + "/" + kind) || 0) + us);
  for (const op of ops)
    for (const layer of [op.layer, "all"])
      for (const kind of [columns.includes(op.kind) ? op.kind : OTHER_KINDS, "all"])
        add(layer, kind, op.self_us);
  return cells;
}

const layerName = layer => layer === null ? "outside" : layer;

function layerCells(row, cells, columns, most) {
  const td = row.selectAll("td").data(layer => columns.concat("all").map(kind => ({layer, kind, us: cells.get(layer + "/" + kind) || 0}))).enter().append("td")
    .classed("sum", d => d.layer === "all" || d.kind === "all");
  const cell = td.filter(d => d.us > 0 && d.layer !== "all" && d.kind !== "all").attr("class", "cell").classed("strong", d => Math.sqrt(d.us / most) > 0.62)
    .style("background-color", d => `rgba(var(--heat), ${0.08 + 0.92 * Math.sqrt(d.us / most)})`);
  td.text(d => d.us > 0 ? time(d.us) : "");
  withTip(cell, d => [nameOf(d.kind), [["layer", d.layer === null ? "outside the blocks" : d.layer],
    ["self time", time(d.us)], ["share of the step", percent(d.us / data.step.median_us)]]]);
}

function drawLayers(box, phase) {
  const ops = data.ops.filter(op => phase === "all" || op.phase === phase), columns = layerColumns(ops), cells = layerTimes(ops, columns);
  const layers = Array.from(new Set(ops.map(op => op.layer))).sort((a, b) => (a === null) - (b === null) || a - b);
  const most = d3.max(layers, l => d3.max(columns, k => cells.get(l + "/" + k))) || 1;
  box.text("");
  const table = box.append("table").attr("class", "heat"), head = table.append("thead").append("tr");
  head.append("th").attr("scope", "col").text("layer");
  head.selectAll("th.kind").data(columns.concat("all")).enter().append("th").attr("class", "kind").attr("scope", "col").append("span").text(nameOf);
  const row = table.append("tbody").selectAll("tr").data(layers.concat("all")).enter().append("tr");
  row.append("th").attr("scope", "row").text(layerName);
  layerCells(row, cells, columns, most);
}

function layers() {
  const to = part("layers");
  if (!data.ops.length) {
    note(to, "This profile has no ops.");
    return;
  }
  note(to, "Self time per layer and kind of op; all of it is the time that ops work. Layers of one shape should look the same; one that does not is worth " +
    "a look.");
  const phases = Array.from(new Set(data.ops.map(op => op.phase)));
  const controls = to.append("div").attr("class", "controls");
  const box = to.append("div").attr("class", "scroll").attr("tabindex", 0).attr("role", "group")
   .attr("aria-label", "Heat map of layers and kinds");
  choose(controls, "Phase", [["all", "All"]].concat(phases.map(p => [p, p])), "all", phase => drawLayers(box, phase));
  drawLayers(box, "all");
}
