/* Before and after: here, at other sizes, and memory against the length of the sequence. */
/* `comparable` false: the two are shares of different things, and have no difference. */
function pointRow(to, label, show, a, b, comparable = true) {
  const name = to.append("b").text(label), bars = to.append("div"), most = Math.max(a, b) || 1;
  name.append("small").attr("class", "muted").text(comparable ? signedPercent(changeOf(a, b)) : "of another peak");
  for (const [style, x] of [["recorded", a], ["corrected", b]]) {
    const line = bars.append("div"), track = line.append("span").attr("class", "track").attr("aria-hidden", "true");
    track.append("i").attr("class", style).style("width", across(known(x) ? x / most : 0));
    line.append("span").text(show(x));
  }
}

function points() {
  const to = part("points"), a = data.before, b = data.after;
  if (!known(a.step_us) || !known(b.step_us)) {
    note(to, "The whole gain was not measured" + (data.interrupted ? ": it was interrupted." : ": there was no time for it."));
    return;
  }
  if (!isTuned()) {
    to.remove();
    return;
  }
  note(to, hasNewStep() ? "All rows are of the same turns of both, one after the other." : "The step is as it was: both have the same one.");
  legend(to, [{name: givenLabel(), color: "--gap"}, {name: "tuned", color: "--accent"}]);
  const grid = to.append("div").attr("class", "versus points");
  pointRow(grid, "Step", time, a.step_us, b.step_us);
  pointRow(grid, "Tokens per second", count, a.tokens_per_s, b.tokens_per_s);
  pointRow(grid, "Samples per second", count, a.samples_per_s, b.samples_per_s);
  if (data.run) pointRow(grid, "Whole run", seconds, data.run.before_s, data.run.after_s);
  pointRow(grid, "MFU", x => percent(known(x) ? x / 100 : null), a.mfu_percent, b.mfu_percent, a.mfu_peak_type === b.mfu_peak_type);
  pointRow(grid, "Planned memory", bytes, a.planned_bytes, b.planned_bytes);
  pointRow(grid, "Ops per step", count, a.ops, b.ops);
  if (known(a.kernels)) pointRow(grid, "Kernels per step", count, a.kernels, b.kernels);
  if (data.run) to.append("p").attr("class", "words").text(runWords());
}

/* Of the whole run: how long it is, and who saves how much of it. */
function runWords() {
  const r = data.run, saving = data.stages.filter(s => s.kept && s.saved_s > 0), both = [r.evaluation_before_s, r.evaluation_after_s].map(seconds);
  return `The whole run is ${many(r.steps, "step")}, and ${both[0] === both[1] || !known(r.evaluation_after_s) ? both[0] : `${both[0]}, then ${both[1]}`} of evaluation.` +
    (saving.length ? ` Of its ${seconds(r.before_s)}, ${saving.map(s => `${passName(s)} saves ${seconds(s.saved_s)}`).join(", ")}.` : "");
}

/* ---- larger batches, where they were asked for ---- */

function batches() {
  const to = part("batches"), l = data.larger_batch, sweep = l && l.sweep;
  if (!l) {
    to.remove();
    return;
  }
  note(to, `Asked for: more samples in an update, with train.lr by the ${l.rule} rule. That such an update learns as well is not proved; that larger micro-batches compute the same one is.`);
  to.append("p").attr("class", "words").text("Larger batch: " + l.words);
  if (!sweep || !sweep.points.length) return;
  plainTable(to, [{label: "batch", text: true, show: p => String(p.batch)}, {label: "step", show: p => time(p.fits ? p.ms_per_step * 1e3 : null)},
    {label: "samples/s", show: p => count(p.samples_per_s)}, {label: "tokens/s", show: p => count(p.tokens_per_s)},
    {label: "planned memory", show: p => bytes(p.planned_mb * 1e6)}, {label: "verdict", text: true, show: p => p.verdict}], sweep.points);
  to.append("p").attr("class", "words").text(sweep.words);
}

/* ---- other sizes ---- */

/* One row for each size; where one was timed and planned, the timed one. */
function distinctSizes() {
  const seen = new Map();
  for (const s of data.sizes) {
    const key = s.batch + "x" + s.seq;
    if (!seen.has(key) || known(s.before.step_us)) seen.set(key, s);
  }
  return [...seen.values()].sort((a, b) => a.batch - b.batch || a.seq - b.seq);
}

/* Those that were measured, and the memory of all, which is planned. */
function sizesTables(to) {
  const measured = distinctSizes().filter(s => known(s.before.step_us)), size = {label: "batch × sequence", text: true, show: s => `${s.batch} × ${s.seq}`};
  if (measured.length)
    plainTable(to, [size, {label: `step ${givenLabel()}`, show: s => time(s.before.step_us)}, {label: "tuned", show: s => time(s.after.step_us)},
      {label: "speed-up", show: s => times(s.speedup)}, {label: "gates", text: true, show: s => gatesWords(s.gates)},
      {label: "tokens/s tuned", show: s => count(s.after.tokens_per_s)}], measured);
  to.append("h3").attr("class", "apart").text("Planned memory");
  plainTable(to, isTuned() ? [size, {label: givenLabel(), show: s => plannedBytes(s.before)}, {label: "tuned", show: s => plannedBytes(s.after)},
    {label: "change", show: s => signedPercent(changeOf(s.before.planned_bytes, s.after.planned_bytes))}]
    : [size, {label: givenLabel(), show: s => plannedBytes(s.before)}], distinctSizes().filter(s => known(s.before.planned_bytes)));
}

/* Memory at the config's own batch size, shortest sequence first. */
function lengths() {
  return distinctSizes().filter(s => s.batch === data.model.batch && known(s.before.planned_bytes) && known(s.after.planned_bytes))
    .sort((a, b) => a.seq - b.seq);
}

function growthWords(list) {
  const a = list[0], b = list[list.length - 1], grown = which => plainNumber(b[which].planned_bytes / a[which].planned_bytes);
  return `A sequence ${plainNumber(b.seq / a.seq)} times as long (${a.seq} to ${b.seq} tokens) takes ${grown("before")} times the memory ${givenLabel()}` +
    (isTuned() ? ` and ${grown("after")} times tuned.` : ".");
}

const memoryLines = isTuned() ? [["before", givenLabel(), "--other"], ["after", "tuned", "--accent"]] : [["before", givenLabel(), "--accent"]];

function lengthMarks(svg, list, x, y) {
  for (const [which, , color] of memoryLines) {
    svg.append("path").attr("class", "length-line").style("stroke", paint(color))
      .attr("d", d3.line().x(s => x(s.seq)).y(s => y(s[which].planned_bytes))(list));
    svg.append("g").selectAll("circle").data(list).enter().append("circle").attr("cx", s => x(s.seq))
      .attr("cy", s => y(s[which].planned_bytes)).attr("r", 3.5).classed("hollow", s => s[which].fits === false)
      .style("fill", s => paint(s[which].fits === false ? "--card" : color)).style("stroke", paint(color));
  }
}

/* Names at the ends of the lines, apart from each other. */
function lengthNames(svg, list, x, y) {
  const last = list[list.length - 1], ys = memoryLines.map(l => y(last[l[0]].planned_bytes));
  if (ys.length > 1 && Math.abs(ys[0] - ys[1]) < 14) ys[ys[0] <= ys[1] ? 0 : 1] = Math.max(...ys) - 14;
  memoryLines.forEach(([, name], i) => svgText(svg, "peak-label", x(last.seq) - 9, ys[i] - 7, "end", name));
}

function lengthHover(svg, list, x, height, margin) {
  const cursor = svgLine(svg, "cursor", 0, margin.top, 0, height - margin.bottom).style("display", "none");
  let at = list.length - 1;
  const show = where => {
    const s = list[at];
    cursor.style("display", null).attr("x1", x(s.seq)).attr("x2", x(s.seq));
    showTip(`${s.seq} tokens`, memoryLines.map(l => [l[1], plannedBytes(s[l[0]])])
      .concat(isTuned() ? [["change", signedPercent(changeOf(s.before.planned_bytes, s.after.planned_bytes))]] : []), where);
  };
  svg.on("mousemove", () => {
    const seq = x.invert(d3.mouse(svg.node())[0]);
    at = d3.scan(list, (a, b) => Math.abs(a.seq - seq) - Math.abs(b.seq - seq));
    show(pointer());
  }).on("mouseleave blur", () => { cursor.style("display", "none"); hideTip(); }).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
    if (!step) return;
    d3.event.preventDefault();
    at = Math.max(0, Math.min(list.length - 1, at + step));
    show(pointIn(svg.node(), x(list[at].seq), height / 2));
  });
}

/* Those of the values, the largest first, that are so many pixels from the one before. */
function apart(values, x, pixels) {
  return values.reduceRight((kept, v) => !kept.length || x(kept[kept.length - 1]) - x(v) >= pixels ? kept.concat(v) : kept, []);
}

function drawLengths(box, width, list) {
  const height = 270, margin = {top: 26, right: 16, bottom: 36, left: 62};
  const x = d3.scaleLinear().domain([0, d3.max(list, s => s.seq)]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, d3.max(list, s => Math.max(s.before.planned_bytes, s.after.planned_bytes)) * 1.05])
    .range([height - margin.bottom, margin.top]);
  const svg = chart(box, width, height, growthWords(list));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickValues(apart(list.map(s => s.seq), x, 34)).tickFormat(d3.format("d")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(bytes));
  svgText(svg, "axis-label", width - margin.right, height - 3, "end", "tokens in a sequence");
  lengthMarks(svg, list, x, y);
  lengthNames(svg, list, x, y);
  lengthHover(svg, list, x, height, margin);
}

function sizes() {
  const to = part("sizes");
  if (!data.sizes.length) {
    to.remove();
    return;
  }
  note(to, (isTuned() ? "The same two programs at other sizes: times of the same turns, judged by the same gates. " : "The program at other sizes. ") +
    "What does not fit needs more memory than this machine had free.");
  sizesTables(to);
  const list = lengths();
  if (list.length < 2) return;
  to.append("h3").attr("class", "apart").text("Memory against the length of the sequence");
  const box = to.append("div").attr("class", "lengths");
  whenSized(box.node(), width => drawLengths(box, width, list));
  const hollow = list.some(s => s.before.fits === false || s.after.fits === false);
  to.append("p").attr("class", "words").text(growthWords(list) + (hollow ? " Hollow dots do not fit in this machine's memory." : ""));
}
