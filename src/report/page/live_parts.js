/* A run that goes on: what it told last, and the parts of the page, which are drawn anew when it tells more. */
const run = {version: 0, state: "setting up", curve: {points: []}, validation: {points: []}, samples: []};
const axis = {x: "step", log: false};
const boxes = [];

function state() {
  part("where").text("").append("b").text(nameOf(run.name || data.name));
  part("where").append("span").attr("class", "state").classed("gone", run.gone).text(" · " + (run.gone ? "no answer: the run has ended, or was stopped" : run.state));
  if (run.device) part("where").append("span").text(" · " + run.device);
  const words = {running: "is being trained", finished: "is trained", stopped: "was stopped", failed: "has failed"}[run.state];
  if (words) part("headline").text(`${nameOf(run.name || data.name)} ${words}`);
  document.title = `${run.steps ? Math.floor(100 * run.step / run.steps) + " % · " : ""}${nameOf(run.name || data.name)} · hone live`;
}

function tiles() {
  part("tiles").text("");
  const gauge = tile("Step", run.steps ? String(run.step) : "–", run.steps ? `of ${run.steps}` : "", known(run.eta_s) && run.state === "running" ? `${seconds(run.eta_s)} left` : run.state);
  if (run.steps) fillGauge(gauge, 0, run.step / run.steps);
  tile("Loss", lossText(run.loss), "", known(run.lr) ? `learning rate ${plainNumber(run.lr)}` : "since the log before").remove();
  tile("Validation loss", lossText(run.val_loss), "", known(run.entropy) && known(run.val_loss) ? `${lossText(run.val_loss - run.entropy)} above the best possible` : "the newest").remove();
  tile("Speed", count(run.tokens_per_s), known(run.tokens_per_s) ? "tokens/s" : "", known(run.steps_per_s) ? `${count(run.steps_per_s)} steps/s` : "").remove();
  tile("Memory", bytes(run.memory_bytes), "", run.on_gpu ? "in use on the GPU" : "the process, at most").remove();
}

function liveBox(to, settings) {
  const box = to.append("div").attr("class", "curves"), draw = () => { if (box.node().clientWidth) drawCurves(box, Math.floor(box.node().clientWidth), settings()); };
  whenSized(box.node(), draw);
  boxes.push(draw);
}

function losses() {
  const to = part("losses"), controls = to.append("div").attr("class", "controls"), set = (key, value) => { axis[key] = value; boxes.forEach(f => f()); };
  choose(controls, "over", [["step", "steps"], ["tokens", "tokens"], ["seconds", "time"]], axis.x, v => set("x", v));
  choose(controls, "scale", [[false, "linear"], [true, "log"]], axis.log, v => set("log", v));
  liveBox(to, () => ({series: [{name: "training", color: paint("--c0"), points: curvePoints(run.curve)}, {name: "validation", color: paint("--c1"), points: curvePoints(run.validation)}],
                      x: axis.x, y: "loss", label: "loss", show: lossText, log: axis.log, band: true, title: `Losses over ${AXES[axis.x][0]}; arrow keys move along`}));
  legend(to, [{name: "training", color: "--c0"}, {name: "validation", color: "--c1"}]);
}

function speed() {
  liveBox(part("speed"), () => ({series: [{name: "tokens/s", color: paint("--c2"), points: curvePoints(run.curve)}], x: axis.x, y: "tokens_per_s", label: "tokens/s",
                                 show: count, zero: true, title: `Tokens per second over ${AXES[axis.x][0]}; arrow keys move along`}));
}

function samples() {
  const to = part("samples");
  to.selectAll("h3, .sample, .note").remove();
  if (!run.samples.length) note(to, "None yet. `hone train --live --samples 200` lets the model write so many tokens at every checkpoint.");
  for (const s of run.samples.slice().reverse()) {
    to.append("h3").text(`After step ${s.step}`);
    to.append("p").attr("class", "sample").text(s.text);
  }
}
