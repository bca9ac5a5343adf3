/* The first screen and the tables of hone compare. */
const runs = data.runs.map((r, i) => ({...r, i, color: seriesColor(i), dash: seriesDash(i)}));
const runNamed = name => runs.find(r => r.name === name);
const notes = runs.filter(r => r.reason || r.warning);

/* Which runs a best is the best of, where not all are. */
const ofFinished = b => b.runs < runs.length ? `, of ${b.runs} of ${many(runs.length, "run")} that finished with one` : "";

function overview() {
  const best = runNamed(data.best), fast = runNamed(data.fastest), states = d3.nest().key(r => r.state).entries(runs);
  part("where").append("b").text(nameOf(data.name));
  part("where").append("span").text(" · " + states.map(s => `${s.values.length} ${s.key}`).join(", "));
  if (best) tile(known(best.val_loss) ? "Lowest validation loss" : "Lowest loss", lossText(known(best.val_loss) ? best.val_loss : best.loss), "", nameOf(data.bests[0].names) + (data.bests[0].tied > 1 ? ", tied" : "") + ofFinished(data.bests[0])).remove();
  else if (data.bests.length > 1) tile("Kinds of data", String(data.bests.length), "", "losses of different data or tokens cannot be compared").remove();
  if (fast) tile("Fastest", count(fast.tokens_per_s), "tokens/s", nameOf(fast.name)).remove();
  const least = d3.min(runs, r => r.planned_bytes), small = runs.filter(r => r.planned_bytes === least);
  if (known(least)) tile("Least memory", bytes(least), "", `${nameOf(small[0].name)}${small.length > 1 ? " and others" : ""}, as planned`).remove();
  tile("Differ in", String(data.keys.length), data.keys.length === 1 ? "key" : "keys", data.keys.slice(0, 4).join(", ") + (data.keys.length > 4 ? ", …" : "")).remove();
  const list = part("notes");
  if (data.bests.length > 1)
    data.bests.forEach(b => list.append("li").text(`${b.data}: ${nameOf(b.names)} ${b.tied > 1 ? "are tied with" : "has"} the lowest ${b.by === "loss" ? "loss" : "validation loss"}, ${lossText(b.loss)}` + (b.runs > 1 ? `, of ${b.runs} runs that finished with one` : ", as its only run that finished with one")));
  notes.forEach(r => list.append("li").text(`${nameOf(r.name)}: ${r.reason || r.warning}`));
  if (!notes.length && data.bests.length < 2) list.remove();
}

/* The run's line of the charts beside its name. */
function withKey(rows) {
  rows.select("td").insert("span", function () { return this.firstChild; }).attr("class", "swatch key").style("background-color", r => r.color);
}

/* As in the terminal: "cpu ×2", "cpu ×1, 4 ranks". */
function deviceOf(r) {
  const device = r.device === "cpu" && known(r.threads) ? `cpu ×${r.threads}` : r.device || "–";
  return r.ranks > 1 ? `${device}, ${r.ranks} ranks` : device;
}

function figures() {
  const to = part("figures");
  withKey(plainTable(to, [
    {label: "run", text: true, show: r => nameOf(r.name)}, {label: "state", text: true, show: r => r.state},
    {label: "step", show: r => r.steps ? `${r.step}/${r.steps}` : r.step}, {label: "loss", show: r => r.state === "nan" ? "nan" : lossText(r.loss)},
    {label: "val loss", show: r => lossText(r.val_loss)}, {label: "best val loss", show: r => lossText(r.best_val_loss)},
    {label: "at step", show: r => known(r.best_step) ? r.best_step : "–"}, {label: "tokens", show: r => count(r.tokens)},
    {label: "training time", show: r => seconds(r.seconds)}, {label: "tokens/s", show: r => count(r.tokens_per_s)},
    {label: "steps/s", show: r => count(r.steps_per_s)}, {label: "planned", show: r => bytes(r.planned_bytes)}, {label: "peak", show: r => bytes(r.peak_bytes)},
    {label: "parameters", show: r => count(r.parameters)}, {label: "device", text: true, show: deviceOf}], runs));
}

function differences() {
  const to = part("differences");
  if (!data.keys.length) {
    note(to, "The configs are the same.");
    return;
  }
  note(to, "Keys of the config that are not the same in all runs.");
  withKey(plainTable(to, [{label: "run", text: true, show: r => nameOf(r.name)}]
    .concat(data.keys.map(k => ({label: k, show: r => r.config[k] === null ? "–" : r.config[k]}))), runs));
}
