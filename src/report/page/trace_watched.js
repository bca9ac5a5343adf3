/* A program that hone watched: its steps undisturbed and recorded, rank by rank, and what was tried in it. */
const windowsOf = r => [["undisturbed", r.undisturbed], ["recorded, shapes", r.recorded_shapes], ["recorded, stacks", r.recorded_stacks]]
  .filter(w => w[1]).map(([name, w]) => ({...w, name, rank: r.rank, step_us: judgedOf(w), ratio: r.undisturbed ? judgedOf(w) / judgedOf(r.undisturbed) : null}));
/* Of undisturbed steps without those that are far from the others, which a note names. */
const judgedOf = w => w.usual_us > 0 ? w.usual_us : w.step_us;

function watched() {
  const to = part("watched"), w = data.watched;
  if (!w || !w.ranks.length) {
    absent("watched");
    return;
  }
  const r = w.ranks[0], rows = w.ranks.flatMap(windowsOf);
  note(to, `Steps of ${nameOf(w.command)}, told by ${nameOf(r.steps_by)}` +
    (r.backwards_per_step > 1 ? `; ${count(r.backwards_per_step)} backward passes in each` : "") +
    (r.optimizer_calls_per_step > 1 ? `; ${count(r.optimizer_calls_per_step)} calls of optimizers in each` : "") +
    ". Times of this table are by the program's clock, over all steps of a window. Undisturbed steps run without the profiler, and the device is waited for at their ends alone: " +
    "findings are judged by them. Recorded ones have the profiler's cost in them: ops, kernels and times of parts are read from those with shapes, lines of Python from those with " +
    "stacks. What is “as recorded” elsewhere is by the marks in the trace.");
  sortableTable(to, {views: {all: {rows, columns: [
    numberColumn("rank", "rank", count), textColumn("name", "window"), numberColumn("step_us", "step", time, {bar: true}),
    numberColumn("steps", "steps", count), numberColumn("first", "after", x => many(x, "step")), numberColumn("ratio", "of undisturbed", times),
    numberColumn("fastest_us", "fastest", time), numberColumn("slowest_us", "slowest", time)]}},
    sort: "rank", search: x => [x.name], placeholder: "filter: words of the window", label: "Filter the windows", summary: () => ""});
  const told = w.ranks.filter(x => known(x.peak_bytes));
  if (told.length)
    note(to, "Memory, at most in tensors on the device: " + told.map(x => (w.ranks.length > 1 ? `rank ${x.rank} ` : "") + bytes(x.peak_bytes)).join(", ") + ".");
  const notes = w.ranks.flatMap(x => x.notes.map(text => (w.ranks.length > 1 ? `rank ${x.rank}: ` : "") + text));
  if (notes.length)
    to.append("ul").attr("class", "warnings").selectAll("li").data(notes).enter().append("li").text(x => x);
}

function tried() {
  const to = part("tried"), trial = data.watched && data.watched.trial;
  if (!trial) {
    absent("tried");
    return;
  }
  const rows = Array.isArray(trial.switches) ? trial.switches : [], word = x => typeof x === "string" ? x : "";
  note(to, "Switches that need no change of the program, tried in it while it ran, in turns with the program as it is. " +
    "Each gain is of the switch beside those that won before it." + (word(trial.why) ? ` ${trial.why}.` : ""));
  if (!rows.length) return;
  sortableTable(to, {views: {all: {rows, tip: r => [word(r.name), [["state", word(r.state)], ["why", word(r.why)]]], columns: [
    textColumn("name", "switch"), textColumn("rule", "answers"), numberColumn("predicted_speedup", "predicted", times),
    numberColumn("speedup", "measured", times, {bar: true}), numberColumn("low", "from", times), numberColumn("high", "to", times),
    textColumn("state", "result"), textColumn("why", "why")]}},
    sort: "speedup", search: r => [word(r.name), word(r.rule), word(r.state)], placeholder: "filter: words of switch, rule, result",
    label: "Filter the switches", summary: () => ""});
  triedLines(to, trial, rows.filter(r => r.state === "kept" && Array.isArray(r.lines)));
}

function triedLines(to, trial, won) {
  const file = typeof trial.settings_file === "string" ? trial.settings_file : "", total = trial.total || {};
  const failed = (Array.isArray(total.gates) ? total.gates : []).find(g => g && g.pass === false);
  if (typeof trial.restored === "boolean")
    note(to, trial.restored ? "After it weights, optimizer, data and random numbers are what they were before, bit for bit."
      : "The program could not be put back as it was: what it trained since is not what it would have.");
  if (!won.length) return;
  note(to, "The lines for the script, in order, each with its gain over those above it" +
    (failed ? `; together they failed: ${failed.why}` :
     isFinite(total.speedup) ? `; together ${times(total.speedup)} (${times(total.low)} to ${times(total.high)})` : "; they were not tried together, as the trial was cut short") +
    (file ? `. Importing ${file} in the first line does the same.` : "."));
  to.append("pre").text(won.map(r => `# ${r.name}: ${times(r.speedup)}\n${r.lines.join("\n")}`).join("\n\n"));
}
