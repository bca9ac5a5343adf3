/* Memory over the step: what is alive after each op, stacked by kind, with the peak in words. */
const memoryKinds = [["parameters", "parameters", "--c7"], ["state", "optimizer state", "--c2"], ["gradients", "gradients", "--c1"],
                     ["activations", "activations", "--c0"], ["inputs", "inputs", "--other"]];
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
      svg.append("text").attr("class", "phase-label").attr("x", (x(from) + x(i + 1)) / 2).attr("y", top).attr("text-anchor", "middle").text(op.phase);
    if (from > 0) svg.append("line").attr("class", "cursor").attr("x1", x(from)).attr("x2", x(from)).attr("y1", top - 9).attr("y2", top + 4);
    from = i + 1;
  });
}

function memoryPeak(svg, x, y, width) {
  const peak = data.memory.peak_op;
  if (peak === null) return;
  const px = x(peak + 0.5), py = y(memoryTotal(data.memory.points[peak])), right = px > width / 2;
  svg.append("line").attr("class", "peak-line").attr("x1", px).attr("x2", px).attr("y1", py).attr("y2", y(0));
  svg.append("circle").attr("cx", px).attr("cy", py).attr("r", 3.5).style("fill", paint("--ink"));
  svg.append("text").attr("class", "peak-label").attr("x", px + (right ? -8 : 8)).attr("y", py + 4).attr("text-anchor", right ? "end" : "start")
    .text("peak " + bytes(data.memory.peak_bytes));
}

function memoryHover(svg, x, height, margin) {
  const n = data.memory.points.length;
  const cursor = svg.append("line").attr("class", "cursor").attr("y1", margin.top).attr("y2", height - margin.bottom).style("display", "none");
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
  const y = d3.scaleLinear().domain([0, (d3.max(points, memoryTotal) || 1) * 1.06]).range([height - margin.bottom, margin.top]);
  box.text("");
  const svg = box.append("svg").attr("width", width).attr("height", height).attr("tabindex", 0).attr("role", "img")
    .attr("aria-label", data.memory.peak_words || "Memory over the step");
  memoryAreas(svg, x, y);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(2, width / 110)).tickFormat(d3.format("d")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(bytes));
  svg.append("text").attr("class", "axis-label").attr("x", width - margin.right).attr("y", height - 3).attr("text-anchor", "end").text("ops in order");
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
