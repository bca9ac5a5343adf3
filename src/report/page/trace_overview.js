/* The first screen of an imported trace. The headline is in the page already. */
const estimate = data.corrected;

function unitTile(title, text, more) {
  const [value, unit] = text.split("\u00a0");
  return tile(title, value, unit, more);
}

function recordedTile() {
  const all = data.steps.map(s => s.total_us).filter(known), mean = data.mean_step.total_us;
  const gauge = unitTile("Step as recorded", time(mean), (all.length > 1 ? "mean of " : "") + many(data.steps_total, "step") +
    (all.length > 1 ? `, ${time(d3.min(all))} to ${time(d3.max(all))}` : ""));
  const low = d3.min(all) * 0.9, high = d3.max(all) * 1.1;
  if (all.length < 2 || !(high > low)) {
    gauge.remove();
    return;
  }
  fillGauge(gauge, (d3.min(all) - low) / (high - low), (d3.max(all) - low) / (high - low));
  gauge.append("em").style("left", across((mean - low) / (high - low)));
}

function correctedTile() {
  const gauge = unitTile("Step without profiler" + (estimate.no_cold_start ? " and cold start" : ""), time(estimate.step_us),
                         estimate.given ? (data.watched ? "measured undisturbed" : "as given") : `estimated, ${time(estimate.low_us)} to ${time(estimate.high_us)}`);
  if (!(estimate.recorded_us > 0)) return;
  fillGauge(gauge, 0, estimate.step_us / estimate.recorded_us);
}

function busyTile() {
  const busy = estimate.step_us > 0 && data.gpu.total_us > 0 ? Math.min(1, estimate.device_us / estimate.step_us) : null;
  if (data.gpu.total_us > 0)
    fillGauge(unitTile("GPU busy", percent(busy), `as recorded ${percent(data.gpu.busy_share)}`), 0, busy);
}

function workTiles() {
  const bound = data.answers.bound_by || "–", l = data.launches;
  const onDevice = data.gpu.total_us > 0;
  tile("Bound by", bound.length > 24 ? bound.slice(0, 23) + "…" : bound, "",
       onDevice ? `host ${time(estimate.host_us)}, GPU ${time(estimate.device_us)} per step` : "no work on a device").remove();
  if (!onDevice) return;
  tile("Kernels per step", count(data.mean_step.kernels), "", `median ${time(l.kernel_us)} long`).remove();
  tile("Launches per step", count(known(l.per_step) ? Math.round(l.per_step) : null), "",
       `a call takes ${time(l.call_us)}`).remove();
}

function overview() {
  const t = data.trace, where = part("where");
  where.append("b").text(nameOf(data.title));
  where.append("span").text(` · ${data.device || "no device named"}` + (t.rank === null ? "" : ` · rank ${t.rank}`) +
    (t.world_size > 1 ? ` of ${t.world_size}` : "") + ` · ${count(t.events)} events`);
  if (data.warnings.length) {
    where.append("span").text(" · ");
    where.append("a").attr("href", "#trace").text(many(data.warnings.length, "warning"));
  }
  recordedTile();
  correctedTile();
  busyTile();
  workTiles();
}
