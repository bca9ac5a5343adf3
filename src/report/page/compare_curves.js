/* Losses and speed of all runs over steps, tokens or time. */
const shownRuns = new Set(runs.map(r => r.i));
const chosen = {x: "step", of: runs.some(r => r.validation.points.length) ? "validation" : "curve", log: false};
const redraws = [];

function seriesOf(of) {
  return runs.filter(r => shownRuns.has(r.i)).map(r => ({name: nameOf(r.name), color: r.color, dash: r.dash, points: curvePoints(r[of])}));
}

/* Which runs are drawn: a button for each. */
function runButtons(to) {
  const li = to.append("ul").attr("class", "legend").selectAll("li").data(runs).enter().append("li");
  const button = li.append("button").attr("type", "button").attr("aria-pressed", true).on("click", function (r) {
    if (!shownRuns.delete(r.i)) shownRuns.add(r.i);
    d3.select(this).attr("aria-pressed", shownRuns.has(r.i));
    redraws.forEach(f => f());
  });
  button.append("span").attr("class", "swatch").style("background-color", r => r.color);
  button.append("span").text(r => nameOf(r.name));
}

function curveBox(to, settings) {
  const box = to.append("div").attr("class", "curves"), draw = () => { if (box.node().clientWidth) drawCurves(box, Math.floor(box.node().clientWidth), settings()); };
  whenSized(box.node(), draw);
  redraws.push(draw);
}

function averaged() {
  const most = d3.max(runs, r => r.curve.lines_per_point), lines = d3.max(runs, r => r.curve.lines);
  return most > 1 ? ` Long runs are shown in at most ${d3.max(runs, r => r.curve.points.length)} points: of the longest, with ${count(lines)} logs, each is the mean of ${most}, and the band is from the lowest to the highest.` : "";
}

function losses() {
  const to = part("losses");
  note(to, "Training losses are means since the log before. Training time is without evaluation and checkpoints." + averaged());
  const controls = to.append("div").attr("class", "controls"), set = (key, value) => { chosen[key] = value; redraws.forEach(f => f()); };
  choose(controls, "loss", [["curve", "training"], ["validation", "validation"]], chosen.of, v => set("of", v));
  choose(controls, "over", [["step", "steps"], ["tokens", "tokens"], ["seconds", "time"]], chosen.x, v => set("x", v));
  choose(controls, "scale", [[false, "linear"], [true, "log"]], chosen.log, v => set("log", v));
  curveBox(to, () => ({series: seriesOf(chosen.of), x: chosen.x, y: "loss", label: chosen.of === "curve" ? "training loss" : "validation loss", show: lossText,
                       log: chosen.log, band: chosen.of === "curve", title: `Losses of ${many(shownRuns.size, "run")} over ${AXES[chosen.x][0]}; arrow keys move along`}));
  runButtons(to);
}

function speed() {
  const to = part("speed");
  note(to, "Tokens per second since the log before, over the same axis as the losses.");
  curveBox(to, () => ({series: seriesOf("curve"), x: chosen.x, y: "tokens_per_s", label: "tokens/s", show: count, zero: true,
                       title: `Tokens per second over ${AXES[chosen.x][0]}; arrow keys move along`}));
}

function memory() {
  const to = part("memory"), list = runs.filter(r => known(r.planned_bytes) || known(r.peak_bytes));
  if (!list.length) {
    to.remove();
    return;
  }
  note(to, "Planned: what a step was given. Peak: the most that the process held, on a GPU what was in use there.");
  const top = d3.max(list, r => Math.max(r.planned_bytes || 0, r.peak_bytes || 0)), grid = to.append("div").attr("class", "versus");
  for (const r of list) {
    grid.append("b").text(nameOf(r.name));
    const rows = grid.append("div");
    for (const [style, value] of [["corrected", r.planned_bytes], ["recorded", r.peak_bytes]]) {
      const row = rows.append("div");
      row.append("span").attr("class", "track").append("i").attr("class", style).style("width", across(known(value) ? value / top : 0));
      row.append("span").text(bytes(value));
    }
  }
  legend(to, [{name: "planned", color: "--accent"}, {name: "peak", color: "--gap"}]);
}
