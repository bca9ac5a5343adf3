/* The nodes of trees: how much each was updated, and how large its gradients were, as a tree, over time and by domain. */
const TREE_MOST = 300, HEAT_MOST = 128;     /* nodes that are drawn */

const nodeRows = (c, i) => {
  const use = c.node_use;
  const rows = [["updated in", percent(use.share[i]) + " of the steps"], ["chance", percent(c.chance)],
                ["gradient norm, mean", plainNumber(use.norm[i])], ["largest", plainNumber(use.norm_max[i])]];
  return rows.concat(use.by_domain.filter(d => d.steps > 0).map(d => [`updated in ${d.domain}`, percent(d.share[i])]));
};

/* ---- the tree ---- */

function treeLayout(c, width, height) {
  const nodes = c.node_use.parents.map((parent, id) => ({id: String(id), parent: parent === null ? "" : String(parent)}));
  return d3.tree().size([width, height])(d3.stratify().id(d => d.id).parentId(d => d.parent)(nodes));
}

/* Where the nodes of a chart of this width are: {root, x(d), y(d), radius(d), height}. */
function treeScales(c, width) {
  const depth = d3.max(treeLayout(c, 1, 1).descendants(), d => d.depth), height = 84 + depth * 92, side = 22, top = 30;
  const norm = c.node_use.norm, size = d3.scaleSqrt().domain([0, d3.max(norm) || 1]).range([4, Math.min(19, width / (c.nodes + 8) * 0.62 + 6)]);
  return {root: treeLayout(c, width - 2 * side, height - 2 * top - 24), height, x: d => side + d.x, y: d => top + d.y,
          radius: d => size(norm[d.data.id] || 0)};
}

function drawBranches(svg, {root, x, y}) {
  svg.selectAll("path").data(root.links()).enter().append("path").attr("class", "branch").attr("d", ({source: a, target: b}) => {
    const half = (y(a) + y(b)) / 2;
    return `M${x(a)},${y(a)}C${x(a)},${half} ${x(b)},${half} ${x(b)},${y(b)}`;
  });
}

function drawTree(box, c, width) {
  const scales = treeScales(c, width), {root, x, y, radius, height} = scales, share = d => c.node_use.share[d.data.id];
  const svg = chart(box, width, height, `The tree of ${nameOf(c.name)}: ${c.nodes} nodes; Tab goes from one to the next`).attr("tabindex", null);
  drawBranches(svg, scales);
  const node = svg.selectAll("g.node").data(root.descendants()).enter().append("g").attr("class", "node")
    .attr("transform", d => `translate(${x(d)},${y(d)})`).attr("role", "img")
    .attr("aria-label", d => `Node ${d.data.id}: updated in ${percent(share(d))} of the steps, norm ${plainNumber(c.node_use.norm[d.data.id])}`);
  node.append("circle").attr("class", "under").attr("r", radius);
  node.append("circle").attr("class", "node-mark").attr("r", radius).style("fill", d => heatColor(share(d)));
  node.append("text").attr("class", "node-name").attr("y", d => radius(d) + 13).attr("text-anchor", "middle").text(d => d.data.id);
  if (width / (c.nodes || 1) > 34 || c.nodes <= 13)
    node.append("text").attr("class", "node-share").attr("y", d => radius(d) + 25).attr("text-anchor", "middle")
      .text(d => known(share(d)) ? Math.round(100 * share(d)) + "%" : "");
  withTipAndFocus(node, d => [`Node ${d.data.id}`, nodeRows(c, +d.data.id)]);
}

/* A chart of one config's nodes that is drawn again when another is chosen or the width changes. draw(box, config, width);
 * returns what draws it again. */
function nodesChart(to, controls, most, draw) {
  const box = to.append("div");
  let shown = firstTree;
  const redraw = () => {
    box.text("");
    if (shown.nodes > most) note(box, `${shown.nodes} nodes are too many to draw; report.json has their numbers.`);
    else if (box.node().clientWidth > 0) draw(box, shown, Math.floor(box.node().clientWidth));
  };
  chooseTree(controls, c => { shown = c; redraw(); });
  whenSized(box.node(), redraw);
  return redraw;
}

function tree() {
  const to = part("tree");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "Each circle is a node: the darker, the larger the share of steps in which it was updated (below its number); the larger, the " +
    "larger the mean norm of its gradient. All seeds together.");
  nodesChart(to, to.append("div").attr("class", "controls"), TREE_MOST, drawTree);
  heatScale(to, "never updated", "in every step");
}

/* ---- over time ---- */

/* Stretches of columns of one domain. */
function domainStretches(time) {
  const out = [];
  time.forEach((t, i) => {
    const last = out[out.length - 1];
    if (last && last.domain === t.domain) last.to = i + 1;
    else out.push({domain: t.domain, from: i, to: i + 1});
  });
  return out;
}

function heatLabels(svg, c, {left, top, bottom, row, w, height}) {
  const time = c.node_use.time;
  for (let i = 0; i < c.nodes; i += c.nodes <= 40 ? 1 : 8) svgText(svg, "axis-label", left - 6, top + i * row + row / 2 + 4, "end", i);
  for (const s of domainStretches(time)) {
    svgLine(svg, "peak-line", left + s.from * w, 6, left + s.from * w, height - bottom + 4);
    svgText(svg, "axis-label", left + s.from * w + 5, 14, "start", s.domain || "");
    svgText(svg, "axis-label", left + s.to * w, height - 8, "end", `step ${time[s.to - 1].step}`);
  }
}

const heatTip = c => d => [`Node ${d.i}, up to step ${d.t.step}` + (d.t.domain ? `: ${d.t.domain}` : ""),
  [["updated in", percent(d.t.share[d.i]) + " of the steps"], ["chance", percent(c.chance)],
   ["gradient norm, mean", plainNumber(d.t.norm[d.i])], ["largest", plainNumber(d.t.norm_max[d.i])]]];

/* key: "share" of the steps, or "norm", of which small ones are made visible by a root. */
function drawHeat(box, c, key, width) {
  const time = c.node_use.time, left = 34, top = 22, bottom = 26, row = c.nodes <= 40 ? 17 : 8;
  const height = top + c.nodes * row + bottom, w = (width - left - 6) / time.length;
  const svg = chart(box, width, height, `Nodes of ${nameOf(c.name)} over ${many(time.length, "column")} of steps`).attr("tabindex", null);
  const most = d3.max(time, t => d3.max(t.norm)) || 1, heat = d => key === "share" ? d.t.share[d.i] : Math.sqrt((d.t.norm[d.i] || 0) / most);
  const cells = [].concat(...time.map((t, column) => d3.range(c.nodes).map(i => ({t, column, i}))));
  const rect = svg.append("g").selectAll("rect").data(cells).enter().append("rect").attr("class", "heat-cell")
    .attr("x", d => left + d.column * w).attr("y", d => top + d.i * row).attr("width", Math.max(0.5, w - (w > 4 ? 0.6 : 0)))
    .attr("height", row - 1).style("fill", d => heatColor(heat(d)));
  withTip(rect, heatTip(c));
  heatLabels(svg, c, {left, top, bottom, row, w, height});
}

function nodesOverTime() {
  const to = part("over-time");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "A row is a node, a column a stretch of steps, all seeds together.");
  const controls = to.append("div").attr("class", "controls");
  let key = "share";
  choose(controls, "Shown", [["share", "Updated"], ["norm", "Gradient norm"]], key, k => { key = k; redraw(); });
  const redraw = nodesChart(to, controls, HEAT_MOST, (box, c, width) => drawHeat(box, c, key, width));
  heatScale(to, "never, or no gradient", "in every step, or the largest norm");
}

/* ---- by domain ---- */

function byDomainAxes(svg, c, x, y, {width, height, left, bottom}) {
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
    .call(d3.axisBottom(x).tickValues(x.domain().filter(i => c.nodes <= 40 || i % 8 === 0)).tickSize(0).tickPadding(6));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(d => 100 * d + "\u00a0%"));
  svgText(svg, "axis-label", width, height - 3, "end", "node");
}

function drawByDomain(box, c, width) {
  const list = c.node_use.by_domain.filter(d => d.steps > 0), height = 250, left = 46, bottom = 34, right = width - 92;
  const svg = chart(box, width, height, `Share of steps in which each node of ${nameOf(c.name)} was updated, by domain`).attr("tabindex", null);
  const x = d3.scaleBand().domain(d3.range(c.nodes)).range([left, right]).paddingInner(0.25);
  const inner = d3.scaleBand().domain(d3.range(list.length)).range([0, x.bandwidth()]);
  const y = d3.scaleLinear().domain([0, 1]).range([height - bottom, 18]);
  byDomainAxes(svg, c, x, y, {width: right, height, left, bottom});
  const bars = [].concat(...list.map((d, j) => d3.range(c.nodes).map(i => ({d, j, i, share: d.share[i] || 0}))));
  const bar = svg.append("g").selectAll("rect").data(bars).enter().append("rect").attr("class", "domain-bar")
    .attr("x", b => x(b.i) + inner(b.j)).attr("width", Math.max(1, inner.bandwidth() - 1)).attr("y", b => y(b.share))
    .attr("height", b => y(0) - y(b.share)).style("fill", b => paint("--c" + b.j % CONFIG_COLORS));
  withTip(bar, b => [`Node ${b.i} in ${b.d.domain}`, [["updated in", percent(b.share) + " of the steps"], ["chance", percent(c.chance)],
                                                     ["gradient norm, mean", plainNumber(b.d.norm[b.i])]]]);
  if (!known(c.chance)) return;
  svgLine(svg, "peak-line", left, y(c.chance), right, y(c.chance));
  svgText(svg, "peak-label", right + 5, y(c.chance) + 4, "start", `chance ${c.k}/${c.nodes}`);
}

function nodesByDomain() {
  const to = part("by-domain");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "In which share of the steps of each domain a node was updated. Random choice would reach the dashed line everywhere; nodes that are " +
    "special to a domain are above it in one and below it in another.");
  nodesChart(to, to.append("div").attr("class", "controls"), HEAT_MOST, drawByDomain);
  legend(to, data.domains.map((d, i) => ({name: d.name, color: "--c" + i % CONFIG_COLORS})));
}
