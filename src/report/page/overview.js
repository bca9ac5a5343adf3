/* The first screen of a profile. The headline is in the page already. */
function stepTile() {
  const s = data.step, [value, unit] = time(s.median_us).split("\u00a0");
  const gauge = tile("Step time, median", value, unit, `p10 ${time(s.p10_us)}, p90 ${time(s.p90_us)}, ${many(s.steps, "step")}`);
  const low = Math.min(s.p10_us, s.median_us) * 0.9, high = Math.max(s.p90_us, s.median_us) * 1.1;
  if (!(high > low)) return;
  const at = us => (us - low) / (high - low);
  fillGauge(gauge, at(s.p10_us), at(s.p90_us));
  gauge.append("em").style("left", across(at(s.median_us)));
}

function speedTiles() {
  const s = data.step, samples = data.model.batch * Math.max(1, data.model.accumulate);
  tile("Samples per second", count(s.samples_per_s), "", `${count(samples)} per step`).remove();
  tile("Tokens per second", count(s.tokens_per_s), "", `${count(s.tokens_per_step)} per step` + (s.padding_share > 0 ? `, ${percent(s.padding_share)} padding` : "")).remove();
}

function mfuTile() {
  const e = data.efficiency;
  const [value, unit] = percent(e.mfu_percent === null ? null : e.mfu_percent / 100).split("\u00a0");
  const gauge = tile("MFU", value, unit, `band ${e.mfu_band || "–"}, ${e.mfu_peak_type}${e.mfu_peak_of === "registers" ? " register" : ""} peak ${plainNumber(e.mfu_peak_gflops)} GFLOP/s`);
  fillGauge(gauge, 0, e.mfu_percent === null ? null : Math.min(1, e.mfu_percent / 100));
  for (const edge of [0.2, 0.4, 0.6]) gauge.append("b").style("left", across(edge));
}

function memoryTile() {
  const m = data.memory, [value, unit] = bytes(m.planned_bytes).split("\u00a0");
  const of = m.available_bytes > 0 ? " of " + bytes(m.available_bytes) : "";
  const gpu = data.machine.gpu, taken = gpu ? m.planned_bytes : m.rss_peak_bytes;     /* a GPU's memory is not the process's */
  const gauge = tile("Memory, planned", value, unit, (gpu ? of.slice(1) + ", " : `process ${bytes(taken)}${of}, `) + `values ${bytes(m.peak_bytes)}`);
  if (m.available_bytes > 0) fillGauge(gauge, 0, taken / m.available_bytes);
}

function overview() {
  const m = data.model;
  const where = part("where");
  where.append("b").text(nameOf(m.name));
  const threads = data.machine.threads, gpu = data.machine.gpu;
  where.append("span").text(` · ${m.arch || "–"}, ${count(m.parameters)} parameters, batch ${m.batch} × ${m.seq}` +
    (m.accumulate > 1 ? ` × ${m.accumulate} accumulated` : "") +
    ` · ${data.machine.device || "–"}, ` + (gpu ? nameOf(gpu.name) : `${threads} thread${threads === 1 ? "" : "s"}`));
  if (data.answers.warning) part("warning").attr("hidden", null).text("Warning: " + data.answers.warning);
  stepTile();
  speedTiles();
  mfuTile();
  memoryTile();
}
