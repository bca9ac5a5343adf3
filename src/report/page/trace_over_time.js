/* What was measured over the whole trace: launches waiting in the queue, bytes allocated on the device. */

/* Where each step begins, as a thin line with the step's number. */
function stepMarks(svg, x, top, bottom) {
  let free = -1;
  for (const s of data.trace.step_marks || data.trace.steps_by ? data.steps : []) {
    const px = x(s.start_us);
    if (!(px >= x.range()[0] && px <= x.range()[1])) continue;
    svgLine(svg, "step-line", px, top, px, bottom);
    if (px < free) continue;
    svgText(svg, "phase-label", px + 3, top + 8, "start", s.step);
    free = px + 14 + 7 * String(s.step).length;
  }
}

function overTimeHover(svg, points, x, what, height, margin) {
  const cursor = svgLine(svg, "cursor", 0, margin.top, 0, height - margin.bottom).style("display", "none");
  let at = 0;
  const show = where => {
    cursor.style("display", null).attr("x1", x(points[at][0])).attr("x2", x(points[at][0]));
    showTip(what.show(points[at][1]), [["at", time(points[at][0])]], where);
  };
  svg.on("mousemove", () => {
    at = Math.max(0, d3.bisector(p => p[0]).right(points, x.invert(d3.mouse(svg.node())[0])) - 1);
    show(pointer());
  }).on("mouseleave blur", () => { cursor.style("display", "none"); hideTip(); }).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
    if (!step) return;
    d3.event.preventDefault();
    at = Math.max(0, Math.min(points.length - 1, at + step));
    show(pointIn(svg.node(), x(points[at][0]), height / 2));
  });
}

function drawOverTime(box, width, points, what) {
  const height = 190, margin = {top: 14, right: 8, bottom: 34, left: 62};
  const x = d3.scaleLinear().domain([Math.min(0, points[0][0]), d3.max(points, p => p[0])]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, (d3.max(points, p => p[1]) || 1) * 1.08]).range([height - margin.bottom, margin.top]);
  const svg = chart(box, width, height, what.label);
  svg.append("path").attr("class", "area").style("fill", paint(what.color)).style("fill-opacity", 0.85)
    .attr("d", d3.area().curve(d3.curveStepAfter).x(p => x(p[0])).y0(y(0)).y1(p => y(p[1]))(points));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).ticks(Math.max(2, width / 110)).tickFormat(time));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).ticks(4).tickFormat(what.show));
  svgText(svg, "axis-label", width - margin.right, height - 3, "end", "since the trace's first event");
  stepMarks(svg, x, margin.top - 8, height - margin.bottom);
  overTimeHover(svg, points, x, what, height, margin);
}

/* what: {label, color, show(value)} */
function overTime(to, all, what) {
  const points = all.filter(p => known(p[0]) && known(p[1]));
  if (points.length < 2) return;
  const box = to.append("div");
  whenSized(box.node(), width => drawOverTime(box, width, points, what));
}

function launches() {
  const to = part("launches"), l = data.launches;
  if (!l.count) {
    absent("launches");
    return;
  }
  facts(to, [["Launches", `${count(l.count)}, ${plainNumber(l.per_step)} per step` +
                         (l.graphs ? `; ${count(l.graphs)} of whole graphs` : "")],
             ["A launch", `the call takes ${time(l.call_us)}, the work begins ${time(l.delay_us)} after it (p90 ` +
                          `${time(l.delay_p90_us)}) and takes ${time(l.kernel_us)}; medians`],
             ["Shorter than its call", `${count(l.shorter_than_call)} (${percent(l.shorter_than_call / l.count)}) of what was launched`],
             ["Host waits for the GPU", `${many(l.syncs, "call")}, ${time(l.sync_us)} in all`],
             ["Queue", `${plainNumber(l.queue_mean)} launched and not finished on average, ${l.queue_max} at most`]]);
  if (data.queue.length < 2) return;
  to.append("h3").text("Queue length over time");
  note(to, "An empty queue means that the GPU waits for the host; a long one, that the host is ahead.");
  overTime(to, data.queue, {label: "Launched and not finished, over time", color: "--c0", show: count});
}

function memory() {
  const to = part("memory"), m = data.memory;
  if (!m.points.length && !known(m.peak_bytes)) {
    absent("memory");
    return;
  }
  note(to, `Allocated on the device: ${bytes(m.peak_bytes)} at the peak` +
    (known(m.total_bytes) ? `, ${percent(m.peak_bytes / m.total_bytes)} of ${bytes(m.total_bytes)}.` : "."));
  overTime(to, m.points, {label: "Bytes allocated on the device, over time", color: "--c2", show: bytes});
}
