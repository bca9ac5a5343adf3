/* The roofline: every op as a dot, under the ceilings of the matrix product and of each level of memory. */
const rooflineHidden = new Set();       /* names of legend entries that are switched off */
const rooflineGroup = op => kindGroup(op.kind);

const rooflineOps = data.ops.filter(op => op.intensity > 0 && op.gflops_per_s > 0)
  .sort((a, b) => d3.descending(a.self_us, b.self_us));
const rooflineBare = data.ops.filter(op => op.self_us > 0 && !(op.flops > 0)).sort((a, b) => d3.descending(a.self_us, b.self_us));

function rooflineScales(width, height, margin) {
  const peaks = data.machine.peaks, ridges = peaks.levels.map(l => l.ridge_flops_per_byte).filter(r => r > 0);
  const xs = rooflineOps.map(op => op.intensity).concat(ridges), ys = rooflineOps.map(op => op.gflops_per_s);
  if (peaks.gemm_gflops > 0) ys.push(peaks.gemm_gflops);
  return {
    x: d3.scaleLog().domain([(d3.min(xs) || 0.1) / 2, (d3.max(xs) || 10) * 3]).range([margin.left, width - margin.right]),
    y: d3.scaleLog().domain([(d3.min(ys) || 0.1) / 2, (d3.max(ys) || 10) * 2.2]).range([height - margin.bottom, margin.top]),
  };
}

function rooflineAxes(svg, {x, y}, width, height, margin) {
  const short = d => d >= 1000 || d < 0.01 ? d.toExponential(0) : String(+d.toPrecision(1));
  const decades = scale => scale.ticks().filter(d => Number.isInteger(Math.round(Math.log10(d) * 1e6) / 1e6));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickValues(decades(x)).tickFormat(short));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(decades(y)).tickFormat(short));
  svg.append("text").attr("class", "axis-label").attr("x", width - margin.right).attr("y", height - 4).attr("text-anchor", "end")
    .text("FLOP per byte");
  svg.append("text").attr("class", "axis-label").attr("x", 4).attr("y", 11).text("GFLOP/s");
}

function rooflineCeilings(svg, {x, y}) {
  const peaks = data.machine.peaks, [x0, x1] = x.domain(), top = peaks.gemm_gflops;
  if (!(top > 0)) return;
  const line = (a, b, kind) => svg.append("line").attr("class", "ceiling " + kind).attr("x1", x(a[0])).attr("y1", y(a[1]))
    .attr("x2", x(b[0])).attr("y2", y(b[1]));
  const label = (text, px, py, angle, anchor) => svg.append("text").attr("class", "ceiling-label").attr("text-anchor", anchor)
    .attr("transform", `translate(${px},${py}) rotate(${angle})`).text(text);
  const widest = d3.max(peaks.levels, l => l.gb_per_s) || 0;
  line([widest > 0 ? Math.max(x0, top / widest) : x0, top], [x1, top], "");
  label(`matrix product ${plainNumber(top)} GFLOP/s`, x(widest > 0 ? Math.max(x0, top / widest) : x0) + 6, y(top) - 6, 0, "start");
  rooflineSlopes(line, label, x, y, top);
}

/* A line per level of memory. Labels stand one after the other along the lines, since two levels can be close together; one
 * that has no room is left out (the peaks are listed with the machine). */
function rooflineSlopes(line, label, x, y, top) {
  const x0 = x.domain()[0], y0 = y.domain()[0], labelled = [], LABEL = 96;
  const slope = Math.atan2(y(10 * y0) - y(y0), x(10 * x0) - x(x0));
  data.machine.peaks.levels.forEach(l => {
    const from = Math.max(x0, y0 / l.gb_per_s), ridge = top / l.gb_per_s;
    if (ridge <= from) return;
    line([from, from * l.gb_per_s], [ridge, top], l.level === "memory" ? "" : "cache");
    const left = x(from), low = y(from * l.gb_per_s), length = Math.hypot(x(ridge) - left, y(top) - low);
    const near = labelled.filter(other => Math.abs(y(other) - y(l.gb_per_s)) * Math.cos(slope) < 14).length, along = 8 + LABEL * near;
    if (along + LABEL > length && near) return;
    label(`${l.level} ${plainNumber(l.gb_per_s)} GB/s`, left + along * Math.cos(slope), low + along * Math.sin(slope) - 5,
          slope * 180 / Math.PI, "start");
    labelled.push(l.gb_per_s);
  });
}

function rooflineDots(svg, {x, y}, width) {
  const most = d3.max(rooflineOps, op => op.self_us) || 1;
  const radius = d3.scaleSqrt().domain([0, most]).range([2.5, Math.max(9, Math.min(16, width / 60))]);
  return svg.append("g").selectAll("circle").data(rooflineOps).enter().append("circle").attr("class", "dot")
    .classed("off", op => rooflineHidden.has(rooflineGroup(op)))
    .attr("cx", op => x(op.intensity)).attr("cy", op => y(op.gflops_per_s)).attr("r", op => radius(op.self_us))
    .style("fill", op => paint(kindColor(op.kind)));
}

/* The dot nearest to the mouse, or the next one by an arrow key, shows its op. */
function rooflineHover(svg, dots, {x, y}) {
  let at = -1;
  const shown = () => rooflineOps.filter(op => !rooflineHidden.has(rooflineGroup(op)));
  const show = (op, where) => {
    dots.classed("on", d => d === op);
    if (op) showTip(nameOf(op.name), opRows(op), where); else hideTip();
  };
  svg.on("mousemove", () => {
    const [mx, my] = d3.mouse(svg.node());
    const near = d3.quadtree(shown(), op => x(op.intensity), op => y(op.gflops_per_s)).find(mx, my, 22);
    show(near, pointer());
  }).on("mouseleave blur", () => show(null)).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[d3.event.key], list = shown();
    if (!step || !list.length) return;
    d3.event.preventDefault();
    at = (at + step + list.length) % list.length;
    show(list[at], pointIn(svg.node(), x(list[at].intensity), y(list[at].gflops_per_s)));
  });
}

function drawRoofline(box, width) {
  const height = Math.round(Math.max(300, Math.min(500, width * 0.5))), margin = {top: 20, right: 12, bottom: 34, left: 48};
  box.text("");
  const svg = box.append("svg").attr("width", width).attr("height", height).attr("tabindex", 0).attr("role", "img")
    .attr("aria-label", `Roofline plot of ${rooflineOps.length} ops; arrow keys step through them, longest first`);
  const scales = rooflineScales(width, height, margin);
  rooflineAxes(svg, scales, width, height, margin);
  rooflineCeilings(svg, scales);
  rooflineHover(svg, rooflineDots(svg, scales, width), scales);
}

function rooflineLegend(to, redraw) {
  const groups = Array.from(new Set(rooflineOps.map(rooflineGroup)));
  const button = to.append("ul").attr("class", "legend").selectAll("li").data(groups).enter().append("li").append("button")
    .attr("type", "button").attr("aria-pressed", true).on("click", function (g) {
      if (!rooflineHidden.delete(g)) rooflineHidden.add(g);
      d3.select(this).attr("aria-pressed", !rooflineHidden.has(g));
      redraw();
    });
  button.append("span").attr("class", "swatch")
    .style("background-color", g => paint(kindColor(rooflineOps.find(op => rooflineGroup(op) === g).kind)));
  button.append("span").text(g => g);
}

function rooflineBareOps(to) {
  if (!rooflineBare.length) return;
  const row = to.append("div").attr("class", "no-flops");
  row.append("span").text(`${rooflineBare.length} ops do no arithmetic, only move bytes:`);
  const dot = row.selectAll("i").data(rooflineBare).enter().append("i").style("background-color", op => paint(kindColor(op.kind)));
  withTip(dot, op => [nameOf(op.name), opRows(op)]);
}

function roofline() {
  const to = part("roofline");
  note(to, "Each dot is an op, its area the self time. Solid lines are the measured ceilings of main memory and of the matrix product; " +
    "dashed ones are the caches. A dot on a line cannot be faster as it is; one far below can.");
  if (!rooflineOps.length) note(to, "No op has FLOPs, bytes and a time.");
  const box = to.append("div");
  whenSized(box.node(), width => drawRoofline(box, width));
  rooflineBareOps(to);
  rooflineLegend(to, () => drawRoofline(box, Math.floor(box.node().clientWidth)));
}
