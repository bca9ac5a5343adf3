/* Where the time of the steps goes, as recorded: the mean step as a bar, each step as a column, and the numbers. */
const partRows = s => stepParts.map(p => [p.name, `${time(s[p.key])} · ${percent(s[p.key] / s.total_us)}`]);

function drawColumns(box, width) {
  const steps = data.steps, height = 210, margin = {top: 8, right: 8, bottom: 24, left: 58};
  const svg = chart(box, width, height, `Step times of ${steps.length} steps by part`);
  const x = d3.scaleBand().domain(d3.range(steps.length)).range([margin.left, width - margin.right]).paddingInner(0.15);
  const y = d3.scaleLinear().domain([0, (d3.max(steps, s => s.total_us) || 1) * 1.03]).range([height - margin.bottom, margin.top]);
  const apart = Math.ceil(steps.length / Math.max(1, (width - margin.left) / 46));
  const columns = d3.stack().keys(stepParts.map(p => p.key))(steps);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`)
    .call(d3.axisLeft(y).ticks(5).tickFormat(time));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickSize(0).tickPadding(7).tickValues(d3.range(0, steps.length, apart)).tickFormat(i => steps[i].step));
  const wide = Math.min(x.bandwidth(), 90), left = i => x(i) + (x.bandwidth() - wide) / 2;
  svg.append("g").selectAll("g").data(columns).enter().append("g").style("fill", (d, i) => paint(stepParts[i].color))
    .selectAll("rect").data(d => d).enter().append("rect").attr("x", (d, i) => left(i)).attr("width", wide)
    .attr("y", d => y(d[1])).attr("height", d => Math.max(0, y(d[0]) - y(d[1])));
  withTip(svg.append("g").selectAll("rect").data(steps).enter().append("rect").attr("x", (d, i) => left(i)).attr("width", wide)
    .attr("y", margin.top).attr("height", height - margin.top - margin.bottom).style("fill", "transparent"),
          s => [`Step ${s.step}`, [["total", time(s.total_us)]].concat(partRows(s))]);
}

function stepsTable(to) {
  const details = to.append("details");
  details.append("summary").text("Times and counts of each step");
  const columns = [["step", s => s.step], ["total", s => time(s.total_us)],
                   ...stepParts.map(p => [p.name, s => time(s[p.key])]), ["GPU busy", s => time(s.busy_us)],
                   ["kernels", s => s.kernels], ["launches", s => s.launches], ["host ops", s => s.host_ops]];
  const table = details.append("div").attr("class", "scroll").append("table");
  table.append("thead").append("tr").selectAll("th").data(columns).enter().append("th").attr("scope", "col").text(k => k[0]);
  table.append("tbody").selectAll("tr").data(data.steps).enter().append("tr").selectAll("td")
    .data(s => columns.map(k => k[1](s))).enter().append("td").text(x => x);
}

/* What a step is made of, as people think of it; the parts below are what is active. */
function phases(to) {
  if (!data.iteration.length) {
    if (data.iteration_note) note(to, `Phases: – (${data.iteration_note}).`);
    return;
  }
  const onDevice = data.gpu.total_us > 0, color = p => phaseColors[p.name] || "--other";
  const bar = (label, key) => stackedBar(to, label, data.iteration.map(p => ({name: p.name, us: p[key], color: color(p)})));
  if (data.ranks.length > 1) note(to, `Phases are of ${data.trace.rank === null ? "the first rank" : "rank " + data.trace.rank}.`);
  if (onDevice) note(to, "A moment goes to the phase whose work the GPU does; where it does none, to the phase that the host is in.");
  bar("Phases, without the profiler", "us");
  bar("Phases, as recorded", "recorded_us");
  if (onDevice) bar("Of them the GPU is busy", "busy_us");
}

function split() {
  const to = part("iteration"), m = data.mean_step;
  if (!data.steps.length) {
    note(to, "The trace has no step.");
    return;
  }
  phases(to);
  note(to, "As recorded. Parts do not overlap: each moment goes to the first one that is active, in this order, so that host " +
    "work counts only while the GPU does nothing." +
    (data.trace.step_marks ? "" : " The trace has no step marks; " + (data.trace.steps_by ? `steps are told by ${data.trace.steps_by}`
      : "it is taken as one step") + "; prof.step() after each step sets them."));
  stackedBar(to, data.steps.length > 1 ? "The mean step" : "The step",
             stepParts.filter(p => m[p.key] > 0).map(p => ({name: p.name, us: m[p.key], color: p.color, hatched: p.hatched})));
  if (data.steps.length > 1) {
    to.append("h3").text("Step by step");
    const box = to.append("div");
    whenSized(box.node(), width => drawColumns(box, width));
  }
  stepsTable(to);
  if (data.steps_note) note(to, data.steps_note);
}
