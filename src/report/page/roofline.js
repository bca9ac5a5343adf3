/* The roofline: every op as a dot, under the ceilings of arithmetic and of each level of memory. Where
 * products are of narrower numbers there are two: what is no such product stays below that of f32. */
const rooflineHidden = new Set();       /* names of legend entries that are switched off */
const rooflineGroup = op => kindGroup(op.kind);

const longestFirst = (a, b) => d3.descending(a.self_us, b.self_us);
const LEAST_US = 1, LABELLED = 5;        /* shorter ops are all clock; so many of the longest are named in the plot */
const rooflineAll = data.ops.filter(op => op.intensity > 0 && op.gflops_per_s > 0);
const rooflineOps = rooflineAll.filter(op => op.self_us >= LEAST_US).sort(longestFirst);
const rooflineTops = [["f32", data.machine.peaks.gemm_gflops]]
  .concat(data.efficiency.mfu_peak_type !== "f32" ? [[data.efficiency.mfu_peak_type, data.efficiency.mfu_peak_gflops]] : [])
  .filter(t => t[1] > 0);
const rooflineBare = data.ops.filter(op => op.self_us >= LEAST_US && !(op.flops > 0)).sort(longestFirst);

function rooflineScales(width, height, margin) {
  const peaks = data.machine.peaks, ridges = peaks.levels.map(l => l.ridge_flops_per_byte).filter(r => r > 0);
  const xs = rooflineOps.map(op => op.intensity).concat(ridges), ys = rooflineOps.map(op => op.gflops_per_s);
  rooflineTops.forEach(t => ys.push(t[1]));
  return {
    x: d3.scaleLog().domain([(d3.min(xs) || 0.1) / 2, (d3.max(xs) || 10) * 3]).range([margin.left, width - margin.right]),
    y: d3.scaleLog().domain([(d3.min(ys) || 0.1) / 2, (d3.max(ys) || 10) * 2.2]).range([height - margin.bottom, margin.top]),
  };
}

function rooflineAxes(svg, {x, y}, width, height, margin) {
  const short = d => d >= 1 ? String(Math.round(d)) : d.toFixed(Math.min(20, -Math.floor(Math.log10(d) + 1e-9)));
  const decades = scale => scale.ticks().filter(d => Number.isInteger(Math.round(Math.log10(d) * 1e6) / 1e6));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickValues(decades(x)).tickFormat(short));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).tickValues(decades(y)).tickFormat(short));
  svgText(svg, "axis-label", width - margin.right, height - 4, "end", "FLOP per byte");
  svgText(svg, "axis-label", 4, 11, "start", "GFLOP/s");
}

function rooflineCeilings(svg, {x, y}) {
  const peaks = data.machine.peaks, [x0, x1] = x.domain(), highest = d3.max(rooflineTops, t => t[1]);
  if (!rooflineTops.length) return;
  const line = (a, b, kind) => svgLine(svg, "ceiling " + kind, x(a[0]), y(a[1]), x(b[0]), y(b[1]));
  const label = (text, px, py, angle) => svgText(svg, "ceiling-label", 0, 0, "start", text)
    .attr("transform", `translate(${px},${py}) rotate(${angle})`);
  const widest = d3.max(peaks.levels, l => l.gb_per_s) || 0;
  for (const [type, top] of rooflineTops) {
    const from = widest > 0 ? Math.max(x0, top / widest) : x0;
    line([from, top], [x1, top], "");
    const of = type === "f32" && peaks.registers_gflops >= top ? "registers" : "matrix product";
    label(`${of}, ${type}, ${plainNumber(top)} GFLOP/s`, x(from) + 6, y(top) + (top < highest ? 13 : -6), 0);
  }
  rooflineSlopes(line, label, x, y, highest);
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
    const apart = other => Math.abs(y(other) - y(l.gb_per_s)) * Math.cos(slope);
    const near = labelled.filter(other => apart(other) < 14).length, along = 8 + LABEL * near;
    if (along + LABEL > length && near) return;
    label(`${l.level} ${plainNumber(l.gb_per_s)} GB/s`, left + along * Math.cos(slope), low + along * Math.sin(slope) - 5,
          slope * 180 / Math.PI);
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
  const away = (op, px, py) => Math.hypot(x(op.intensity) - px, y(op.gflops_per_s) - py);
  const show = (op, where) => {
    dots.classed("on", d => d === op);
    if (!op) return hideTip();
    const more = shown().filter(other => away(other, x(op.intensity), y(op.gflops_per_s)) < 1).length - 1;
    showTip(nameOf(op.name) + (more > 0 ? ` (and ${more} more here)` : ""), opRows(op), where);
  };
  svg.on("mousemove", () => {
    const [mx, my] = d3.mouse(svg.node());
    const list = shown(), near = list[d3.scan(list, (a, b) => away(a, mx, my) - away(b, mx, my))];  /* of equals the longest */
    show(near && away(near, mx, my) < 22 ? near : null, pointer());
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
  const svg = chart(box, width, height,
                    `Roofline plot of ${rooflineOps.length} ops; arrow keys step through them, longest first`);
  const scales = rooflineScales(width, height, margin);
  rooflineAxes(svg, scales, width, height, margin);
  rooflineCeilings(svg, scales);
  const dots = rooflineDots(svg, scales, width);
  rooflineLabels(svg, dots, {left: margin.left + 2, right: width - margin.right, top: margin.top, bottom: height - margin.bottom});
  rooflineHover(svg, dots, scales);
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
  row.append("span").text(`${many(rooflineBare.length, "op")} without arithmetic, which only move bytes:`);
  const dot = row.selectAll("i").data(rooflineBare).enter().append("i")
    .style("background-color", op => paint(kindColor(op.kind)));
  withTip(dot, op => [nameOf(op.name), opRows(op)]);
}

function rooflineShort() {
  const n = rooflineAll.length - rooflineOps.length;
  return n ? ` ${many(n, "op")} shorter than ${time(LEAST_US)} ${n === 1 ? "is" : "are"} left out.` : "";
}

function roofline() {
  const to = part("roofline");
  note(to, "Each dot is an op, its area the self time. Solid lines are the measured ceilings of main memory and of " +
    "arithmetic; dashed ones are the caches. A dot on a line cannot be faster as it is; one far below can." + rooflineShort());
  if (!rooflineOps.length) {
    note(to, "No op has FLOPs, bytes and a time that can be told.");
    return;
  }
  const box = to.append("div");
  whenSized(box.node(), width => drawRoofline(box, width));
  rooflineBareOps(to);
  rooflineLegend(to, () => drawRoofline(box, Math.floor(box.node().clientWidth)));
}
