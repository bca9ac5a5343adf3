/* The nodes of trees: how much each was updated, and how large its gradients were, as a tree, over time and by domain. */
const TREE_MOST = 300, HEAT_MOST = 128;     /* nodes that are drawn */

const nodeRows = (c, i) => {
  const use = c.node_use;
  return [["updated in", percent(use.share[i]) + " of the steps"], ["chance", percent(c.chance)], ["gradient norm, mean", plainNumber(use.norm[i])],
          ["largest", plainNumber(use.norm_max[i])]].concat(use.by_domain.filter(d => d.steps > 0).map(d => [`updated in ${d.domain}`, percent(d.share[i])]));
};

/* ---- the tree ---- */

function treeLayout(c, width, height) {
  const parents = c.node_use.parents, nodes = parents.map((p, i) => ({id: i, parent: p}));
  const root = d3.stratify().id(d => d.id).parentId(d => d.parent === null ? "" : d.parent)(nodes.map(n => ({id: String(n.id), parent: n.parent === null ? null : String(n.parent)})));
  return d3.tree().size([width, height])(root);
}

function drawTree(box, c, width) {
  const depth = d3.max(treeLayout(c, 1, 1).descendants(), d => d.depth), height = 84 + depth * 92, margin = {x: 22, y: 30};
  const svg = chart(box, width, height, `The tree of ${nameOf(c.name)}: ${c.nodes} nodes; Tab goes from one to the next`).attr("tabindex", null);
  const root = treeLayout(c, width - 2 * margin.x, height - 2 * margin.y - 24), use = c.node_use, most = d3.max(use.norm) || 1;
  const x = d => margin.x + d.x, y = d => margin.y + d.y, radius = d3.scaleSqrt().domain([0, most]).range([4, Math.min(19, width / (c.nodes + 8) * 0.62 + 6)]);
  svg.selectAll("path").data(root.links()).enter().append("path").attr("class", "branch")
    .attr("d", d => `M${x(d.source)},${y(d.source)}C${x(d.source)},${(y(d.source) + y(d.target)) / 2} ${x(d.target)},${(y(d.source) + y(d.target)) / 2} ${x(d.target)},${y(d.target)}`);
  const node = svg.selectAll("g.node").data(root.descendants()).enter().append("g").attr("class", "node").attr("transform", d => `translate(${x(d)},${y(d)})`)
    .attr("role", "img").attr("aria-label", d => `Node ${d.data.id}: updated in ${percent(use.share[d.data.id])} of the steps, norm ${plainNumber(use.norm[d.data.id])}`);
  node.append("circle").attr("class", "under").attr("r", d => radius(use.norm[d.data.id]));
  node.append("circle").attr("class", "node-mark").attr("r", d => radius(use.norm[d.data.id])).style("fill", d => heatColor(use.share[d.data.id]));
  node.append("text").attr("class", "node-name").attr("y", d => radius(use.norm[d.data.id]) + 13).attr("text-anchor", "middle").text(d => d.data.id);
  if (width / (c.nodes || 1) > 34 || c.nodes <= 13)
    node.append("text").attr("class", "node-share").attr("y", d => radius(use.norm[d.data.id]) + 25).attr("text-anchor", "middle")
      .text(d => known(use.share[d.data.id]) ? Math.round(100 * use.share[d.data.id]) + "%" : "");
  withTipAndFocus(node, d => [`Node ${d.data.id}`, nodeRows(c, +d.data.id)]);
}

function tree() {
  const to = part("tree");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "Each circle is a node: the darker, the larger the share of steps in which it was updated (below its number); the larger, the larger the mean norm of " +
    "its gradient. All seeds together.");
  const controls = to.append("div").attr("class", "controls"), box = to.append("div");
  let shown = firstTree;
  const draw = () => {
    box.text("");
    if (shown.nodes > TREE_MOST) note(box, `${shown.nodes} nodes are too many to draw; report.json has their numbers.`);
    else if (box.node().clientWidth > 0) drawTree(box, shown, Math.floor(box.node().clientWidth));
  };
  chooseTree(controls, c => { shown = c; draw(); });
  whenSized(box.node(), draw);
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

function drawHeat(box, c, key, width) {
  const time = c.node_use.time, margin = {left: 34, top: 22, bottom: 26, right: 6}, row = c.nodes <= 40 ? 17 : 8;
  const height = margin.top + c.nodes * row + margin.bottom, w = (width - margin.left - margin.right) / time.length;
  const svg = chart(box, width, height, `Nodes of ${nameOf(c.name)} over ${many(time.length, "stretch")} of steps`).attr("tabindex", null);
  const most = key === "share" ? 1 : d3.max(time, t => d3.max(t.norm)) || 1, part = (t, i) => key === "share" ? t.share[i] : Math.sqrt(t.norm[i] / most);
  const cells = [].concat(...time.map((t, column) => d3.range(c.nodes).map(i => ({t, column, i}))));
  const rect = svg.append("g").selectAll("rect").data(cells).enter().append("rect").attr("class", "heat-cell").attr("x", d => margin.left + d.column * w).attr("y", d => margin.top + d.i * row)
    .attr("width", Math.max(0.5, w - (w > 4 ? 0.6 : 0))).attr("height", row - 1).style("fill", d => heatColor(part(d.t, d.i)));
  withTip(rect, d => [`Node ${d.i}, up to step ${d.t.step}` + (d.t.domain ? `: ${d.t.domain}` : ""), [["updated in", percent(d.t.share[d.i]) + " of the steps"], ["chance", percent(c.chance)],
    ["gradient norm, mean", plainNumber(d.t.norm[d.i])], ["largest", plainNumber(d.t.norm_max[d.i])]]]);
  for (let i = 0; i < c.nodes; i += c.nodes <= 40 ? 1 : 8) svgText(svg, "axis-label", margin.left - 6, margin.top + i * row + row / 2 + 4, "end", i);
  for (const s of domainStretches(time)) {
    svgLine(svg, "peak-line", margin.left + s.from * w, 6, margin.left + s.from * w, height - margin.bottom + 4);
    svgText(svg, "axis-label", margin.left + s.from * w + 5, 14, "start", s.domain || "");
    svgText(svg, "axis-label", margin.left + s.to * w, height - 8, "end", `step ${time[s.to - 1].step}`);
  }
}

function nodesOverTime() {
  const to = part("over-time");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "A row is a node, a column a stretch of steps, all seeds together.");
  const controls = to.append("div").attr("class", "controls"), box = to.append("div");
  let shown = firstTree, key = "share";
  const draw = () => {
    box.text("");
    if (shown.nodes > HEAT_MOST) note(box, `${shown.nodes} nodes are too many to draw; report.json has their numbers.`);
    else if (box.node().clientWidth > 0) drawHeat(box, shown, key, Math.floor(box.node().clientWidth));
  };
  choose(controls, "Shown", [["share", "Updated"], ["norm", "Gradient norm"]], key, k => { key = k; draw(); });
  chooseTree(controls, c => { shown = c; draw(); });
  whenSized(box.node(), draw);
  heatScale(to, "never, or no gradient", "in every step, or the largest norm");
}

/* ---- by domain ---- */

function drawByDomain(box, c, width) {
  const list = c.node_use.by_domain.filter(d => d.steps > 0), height = 250, margin = {left: 46, top: 18, bottom: 34, right: 92};
  const svg = chart(box, width, height, `Share of steps in which each node of ${nameOf(c.name)} was updated, by domain`).attr("tabindex", null);
  const x = d3.scaleBand().domain(d3.range(c.nodes)).range([margin.left, width - margin.right]).paddingInner(0.25);
  const inner = d3.scaleBand().domain(d3.range(list.length)).range([0, x.bandwidth()]), y = d3.scaleLinear().domain([0, 1]).range([height - margin.bottom, margin.top]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickValues(x.domain().filter(i => c.nodes <= 40 || i % 8 === 0)).tickSize(0).tickPadding(6));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(d => 100 * d + "\u00a0%"));
  const bars = [].concat(...list.map((d, j) => d3.range(c.nodes).map(i => ({d, j, i}))));
  const bar = svg.append("g").selectAll("rect").data(bars).enter().append("rect").attr("class", "domain-bar").attr("x", b => x(b.i) + inner(b.j)).attr("width", Math.max(1, inner.bandwidth() - 1))
    .attr("y", b => y(b.d.share[b.i] || 0)).attr("height", b => y(0) - y(b.d.share[b.i] || 0)).style("fill", b => paint("--c" + b.j % CONFIG_COLORS));
  withTip(bar, b => [`Node ${b.i} in ${b.d.domain}`, [["updated in", percent(b.d.share[b.i]) + " of the steps"], ["chance", percent(c.chance)], ["gradient norm, mean", plainNumber(b.d.norm[b.i])]]]);
  if (known(c.chance)) {
    svgLine(svg, "peak-line", margin.left, y(c.chance), width - margin.right, y(c.chance));
    svgText(svg, "peak-label", width - margin.right + 5, y(c.chance) + 4, "start", `chance ${c.k}/${c.nodes}`);
  }
  svgText(svg, "axis-label", width - margin.right, height - 3, "end", "node");
}

function nodesByDomain() {
  const to = part("by-domain");
  if (!firstTree) {
    to.remove();
    return;
  }
  note(to, "In which share of the steps of each domain a node was updated. Random choice would reach the dashed line everywhere; nodes that are special to a domain are above it in " +
    "one and below it in another.");
  const controls = to.append("div").attr("class", "controls"), box = to.append("div");
  let shown = firstTree;
  const draw = () => {
    box.text("");
    if (shown.nodes > HEAT_MOST) note(box, `${shown.nodes} nodes are too many to draw; report.json has their numbers.`);
    else if (box.node().clientWidth > 0) drawByDomain(box, shown, Math.floor(box.node().clientWidth));
  };
  chooseTree(controls, c => { shown = c; draw(); });
  whenSized(box.node(), draw);
  legend(to, data.domains.map((d, i) => ({name: d.name, color: "--c" + i % CONFIG_COLORS})));
}
