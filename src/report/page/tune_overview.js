/* The first screen of tune's page: what the whole of it won and against what, what was kept, and on which machine. */
function pointTile(title, show, a, b) {
  const [value, unit] = show(b).split("\u00a0");
  const gauge = tile(title, value, unit, !known(a) ? "not measured" : isTuned() ? `${givenLabel()} ${show(a)}` : givenLabel());
  if (!known(a) || !known(b) || !isTuned()) gauge.remove();
  return {gauge, most: Math.max(a, b)};
}

function speedTile() {
  if (!data.stages.some(s => known(s.measured_speedup))) tile("Speed-up", "–", "", "nothing was tried").remove();
  else if (!known(data.speedup)) tile("Speed-up", times(lastGain()), "", "stage by stage; the whole was not measured").remove();
  else if (!hasNewStep()) tile("Speed-up", times(1), "", `against ${givenName()}: ${isTuned() ? "its step is as it was" : "nothing was kept"}`).remove();
  else
    tile("Speed-up", times(data.speedup), "", `${times(data.speedup_low)} to ${times(data.speedup_high)}, against ${givenName()}`).remove();
}

function pointTiles() {
  const a = data.before, b = data.after, share = (t, x, y) => {
    fillGauge(t.gauge, 0, y / t.most);
    t.gauge.append("em").style("left", across(x / t.most));
  };
  speedTile();
  share(pointTile("Step", time, a.step_us, b.step_us), a.step_us, b.step_us);
  share(pointTile("Tokens per second", count, a.tokens_per_s, b.tokens_per_s), a.tokens_per_s, b.tokens_per_s);
  const mfu = x => percent(known(x) ? x / 100 : null), t = pointTile("MFU", mfu, a.mfu_percent, b.mfu_percent);
  fillGauge(t.gauge, 0, Math.min(1, b.mfu_percent / 100));
  t.gauge.append("em").style("left", across(a.mfu_percent / 100));
  if (data.run) pointTile("Whole run", seconds, data.run.before_s, isTuned() ? data.run.after_s : data.run.before_s).gauge.remove();
  share(pointTile("Memory, planned", bytes, a.planned_bytes, b.planned_bytes), a.planned_bytes, b.planned_bytes);
}

/* The product of what was kept. */
function lastGain() {
  return data.stages.length ? data.stages[data.stages.length - 1].cumulative_speedup : null;
}

function keptList() {
  const list = part("kept"), kept = data.stages.filter(s => s.kept);
  if (!kept.length) {
    part("kept-title").text("Nothing was kept");
    list.append("p").text("The config stays as it was. " + (data.stages.length ? "What was looked at:" : ""));
  }
  const li = list.selectAll("li").data(kept.length ? kept : data.stages).enter().append("li");
  li.append("a").attr("href", s => "#stage-" + data.stages.indexOf(s)).text(passName);
  const gain = li.append("span").attr("class", "gain");
  gain.append("b").text(s => times(isMeasured(s) ? s.measured_speedup : s.predicted_speedup));
  gain.append("span").attr("class", "muted").text(s => s.kept ? ` · so far ${times(s.cumulative_speedup)}${savedWords(s)}` : isMeasured(s) ? ` · ${outcomeOf(s)}` : " expected · not tried");
  li.append("p").text(s => [s.what || s.change, s.why === "faster" ? null : s.why].filter(x => x).join(" · "));
}

function about() {
  const list = part("answers"), tried = data.stages.filter(isMeasured), m = data.machine || {};
  const kept = tried.filter(s => s.kept).length;
  const all = data.out_of_time && tried.length === data.stages.length;        // what is left is of the kind of which nothing is expected
  const of = all ? `${many(tried.length, "stage")}, all that promised something` : `${tried.length} of ${many(data.stages.length, "stage")}`;
  const rows = [["Profiled first", data.bound],
                ["Tried", `${of}, ${kept} kept, in ${plainNumber(data.seconds)}\u00a0s`],
                ["Machine", m.fingerprint ? m.fingerprint + (m.gpu ? "" : ` · ${many(m.threads, "thread")}`) : null],
                ["MFU", mfuPeakWords()]];
  if (data.warning) rows.unshift(["Warning", data.warning]);
  if (data.larger_batch) rows.push(["Larger batch", data.larger_batch.words]);
  if (known(data.naive_kernels))
    rows.push(["Kernels per step", `${count(data.naive_kernels)} without passes, ${count(data.before.kernels)} as given, ` +
      `${count(data.after.kernels)} tuned`]);
  if (known(data.median_prediction_error))
    rows.push(["Predictions", `off by ${percent(data.median_prediction_error)} in the median of what was measured`]);
  if (data.out_of_time) rows.push(["Time", "It was spent before everything was tried; --budget gives more."]);
  if (data.gates) rows.push(["Gates", `${gatesWords(data.gates)}, from ${givenName()} to the tuned config`]);
  if (data.check) rows.push(["Noise", `the config against itself: ${times(data.check.speedup)} (${times(data.check.speedup_low)} to ` +
    `${times(data.check.speedup_high)}${known(data.check.turns) ? `, ${count(data.check.turns)} turns in ${count(data.check.openings)} openings` : ""}), the same bits` +
    (data.check.believed_above > 1 ? `; no gain up to ${plainNumber(data.check.believed_above)}× was believed` : "")]);
  for (const f of data.references || [])
    rows.push(["Also", `${times(f.speedup)} (${times(f.speedup_low)} to ${times(f.speedup_high)}) against ${f.name}` + (f.judged === false ? ": no verdict" : "")]);
  for (const [label, text] of rows.filter(r => r[1])) {
    list.append("dt").text(label);
    list.append("dd").text(text);
  }
}

function overview() {
  const m = data.model || {}, where = part("where");
  where.append("b").text(nameOf(data.name));
  where.append("span").text(` · ${m.arch || "–"}, batch ${m.batch} × ${m.seq}` +
    (m.accumulate > 1 ? ` × ${m.accumulate} accumulated` : "") +
    ` · against ${givenName()}`);
  pointTiles();
  keptList();
  about();
}
