/* Memory over the step: what is alive while each op runs, stacked by kind, with the peak in words. */
const memoryKinds = [["parameters", "parameters", "--c7"], ["state", "optimizer state", "--c2"],
                     ["gradients", "gradients", "--c1"], ["activations", "activations", "--c0"],
                     ["inputs", "inputs and tables", "--other"]];
const memoryTotal = m => d3.sum(memoryKinds, k => m[k[0]]);

function memoryAreas(svg, x, y) {
  const points = data.memory.points, closed = points.concat(points.slice(-1));      /* the last op has a width too */
  const area = d3.area().curve(d3.curveStepAfter).x((d, i) => x(i)).y0(d => y(d[0])).y1(d => y(d[1]));
  svg.append("g").selectAll("path").data(d3.stack().keys(memoryKinds.map(k => k[0]))(closed)).enter().append("path")
    .attr("class", "area").attr("d", area).style("fill", (d, i) => paint(memoryKinds[i][2])).style("fill-opacity", 0.85);
}

/* Where each phase begins, as words above the plot. */
function memoryPhases(svg, x, top) {
  let from = 0;
  data.ops.forEach((op, i) => {
    if (i + 1 < data.ops.length && data.ops[i + 1].phase === op.phase) return;
    if (x(i + 1) - x(from) > 7 * op.phase.length)
      svgText(svg, "phase-label", (x(from) + x(i + 1)) / 2, top, "middle", op.phase);
    if (from > 0) svgLine(svg, "cursor", x(from), top - 9, x(from), top + 4);
    from = i + 1;
  });
}

function memoryPeak(svg, x, y, width) {
  const peak = data.memory.peak_op;
  if (peak === null) return;
  const px = x(peak + 0.5), py = y(memoryTotal(data.memory.points[peak])), right = px > width / 2;
  svgLine(svg, "peak-line", px, py, px, y(0));
  svg.append("circle").attr("cx", px).attr("cy", py).attr("r", 3.5).style("fill", paint("--ink"));
  svgText(svg, "peak-label", px + (right ? -8 : 8), py + 4, right ? "end" : "start", "values " + bytes(data.memory.peak_bytes));
}

function memoryHover(svg, x, height, margin) {
  const n = data.memory.points.length;
  const cursor = svgLine(svg, "cursor", 0, margin.top, 0, height - margin.bottom).style("display", "none");
  let at = Math.max(0, data.memory.peak_op || 0);
  const show = where => {
    const m = data.memory.points[at], op = data.ops[at];
    cursor.style("display", null).attr("x1", x(at + 0.5)).attr("x2", x(at + 0.5));
    showTip(nameOf(op.name), [["op", `${at + 1} of ${n}`], ["phase", op.phase], ["in all", bytes(memoryTotal(m))]]
      .concat(memoryKinds.map(k => [k[1], bytes(m[k[0]])])), where);
  };
  svg.on("mousemove", () => {
    at = Math.max(0, Math.min(n - 1, Math.floor(x.invert(d3.mouse(svg.node())[0]))));
    show(pointer());
  }).on("mouseleave blur", () => { cursor.style("display", "none"); hideTip(); }).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
    if (!step) return;
    d3.event.preventDefault();
    at = Math.max(0, Math.min(n - 1, at + step));
    show(pointIn(svg.node(), x(at + 0.5), height / 2));
  });
}

function drawMemory(box, width) {
  const height = 290, margin = {top: 22, right: 8, bottom: 34, left: 62}, points = data.memory.points;
  const x = d3.scaleLinear().domain([0, points.length]).range([margin.left, width - margin.right]);
  const most = (d3.max(points, memoryTotal) || 1) * 1.06;
  const y = d3.scaleLinear().domain([0, most]).range([height - margin.bottom, margin.top]);
  const svg = chart(box, width, height, data.memory.peak_words || "Memory over the step");
  memoryAreas(svg, x, y);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(2, width / 110)).tickFormat(d3.format("d")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickFormat(bytes));
  svgText(svg, "axis-label", width - margin.right, height - 3, "end", "ops in order");
  memoryPhases(svg, x, 12);
  memoryPeak(svg, x, y, width);
  memoryHover(svg, x, height, margin);
}

function memory() {
  const to = part("memory");
  if (!data.memory.points.length) {
    note(to, "This profile has no ops.");
    return;
  }
  legend(to, memoryKinds.map(k => ({name: k[1], color: k[2]})));
  const box = to.append("div");
  whenSized(box.node(), width => drawMemory(box, width));
  to.append("p").attr("class", "words").text(data.memory.peak_words);
}
