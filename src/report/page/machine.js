/* The machine, the model, and the config as it was run. */
const productPeaks = peaks => [["f32", peaks.product_gflops || peaks.gemm_gflops], ["tf32", peaks.tf32_gflops], ["bf16", peaks.bf16_gflops], ["f16", peaks.f16_gflops]]
  .filter(([type, top]) => type === "f32" || top > 0);

/* What it costs to start a kernel, and to bring data to the GPU. */
function gpuPeaks(g) {
  if (!g) return [];
  return [["a kernel in a graph", plainNumber(g.replayed_us) + " µs", "", ""],
          ["a kernel that the host starts", plainNumber(g.launched_us) + " µs", "", ""],
          ["from pinned memory of the host", plainNumber(g.pinned_gb_per_s) + " GB/s", "", ""],
          ["from other memory of the host", plainNumber(g.pageable_gb_per_s) + " GB/s", "", ""]];
}

function peaksTable(to) {
  const peaks = data.machine.peaks;
  to.append("h3").text("Measured peaks");
  const table = to.append("div").attr("class", "scroll").append("table");
  const head = table.append("thead").append("tr");
  const heads = ["", "peak", "size", "ridge, FLOP/byte"];
  head.selectAll("th").data(heads).enter().append("th").attr("scope", "col").classed("text", h => !h).text(h => h);
  const product = (type, gflops) => [`matrix product, ${type}`, plainNumber(gflops) + " GFLOP/s", "", ""];
  const registers = peaks.registers_gflops > 0 ? [["multiply-adds in registers, f32", plainNumber(peaks.registers_gflops) + " GFLOP/s", "", ""]] : [];
  const rows = registers.concat(productPeaks(peaks).map(([type, top]) => product(type, top)))
    .concat(peaks.levels.map(l => [l.level + ", copy", plainNumber(l.gb_per_s) + " GB/s", bytes(l.bytes),
                                   plainNumber(l.ridge_flops_per_byte)]), gpuPeaks(peaks.gpu));
  const tr = table.append("tbody").selectAll("tr").data(rows).enter().append("tr");
  tr.selectAll("td").data(r => r).enter().append("td").classed("text", (c, i) => !i).text(c => c);
}

function counterWords(c) {
  if (!c) return "not readable on this machine";
  return `${count(c.instructions)} instructions, ${count(c.cycles)} cycles (${plainNumber(c.instructions_per_cycle)} per ` +
    `cycle), ${count(c.cache_misses)} cache misses`;
}

function cpuFacts(m) {
  return [["Instruction set", m.isa], ["BLAS", m.blas], ["Threads", m.threads], ["Counters per step", counterWords(data.counters)]];
}

function gpuFacts(g) {
  const how = g.looks ? `busy ${plainNumber(g.busy_percent)} %, counting what lies between and around the steps; ` +
    `${bytes(g.memory_used_bytes)} of ${bytes(g.memory_bytes)} used, ` +
    `${plainNumber(g.watts)} W, up to ${plainNumber(g.celsius_most)} °C, SM clock ${plainNumber(g.sm_mhz_least)} to ` +
    `${plainNumber(g.sm_mhz_most)} MHz` + (g.held_down_by ? `, held down by ${g.held_down_by}` : "") : "it tells nothing";
  return [["GPU", g.name], ["Kernels per step", g.kernels_per_step === null ? "–" : count(g.kernels_per_step)],
          ["Ops timed by", g.ops_timed_by], ["While it was measured", how]];
}

function machine() {
  const to = part("machine"), m = data.machine, e = data.efficiency;
  facts(to, [["Machine", m.fingerprint], ["Device", m.device]].concat(m.gpu ? gpuFacts(m.gpu) : cpuFacts(m), [["Layers", data.model.layers], ["Parameters", count(data.model.parameters)],
             ["Model FLOPs per step", count(e.model_flops)],
             ["A step by the op table", `${count(e.hardware_flops)} FLOP, ${bytes(e.hardware_bytes)}, ` +
                                        `${plainNumber(e.arithmetic_intensity_flops_per_byte)} FLOP/byte`],
             ["Loss", plainNumber(data.step.loss)]]));
  peaksTable(to);
  if (!data.config_yaml) return;
  const details = to.append("details").style("margin-top", "1rem");
  details.append("summary").text("Config");
  details.append("pre").text(data.config_yaml);
}
