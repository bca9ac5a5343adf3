/* The first screen of hone simulate, and its tables. */
const most = data.points[d3.scan(data.points, (a, b) => b.ranks - a.ranks)];
const stepParts = p => [{name: "compute", us: p.compute_us, color: "--c0"}, {name: "packing", us: p.packing_us, color: "--c4"},
                        {name: "exposed communication", us: p.exposed_us, color: "--c3"}, {name: "the slowest rank", us: p.slowest_us, color: "--c1"}];
const bucketSize = mb => mb ? `${mb}\u00a0MB` : "their own size";
const linkWords = l => l ? `${time(l.us)}, ${plainNumber(l.gbit_per_s)} Gbit/s, ${l.measured ? "as hone doctor measured it" : "as given"}` : null;

function overview() {
  part("where").append("b").text(nameOf(data.name));
  part("where").append("span").text(` · ${data.device}${data.gpu ? "" : `, ${many(data.threads, "thread")}`} · ${many(data.samples_per_rank, "sample")} per rank`);
  tile("Efficiency", percent(most.efficiency), "", `${many(most.ranks, "rank")}, ${times(most.speedup)} of one`).remove();
  tile("Step", time(most.step_us), "", `${time(data.step_us)} on one rank`).remove();
  tile("Exposed", time(most.exposed_us), "", `of ${time(most.sums_us)} that sums take`).remove();
  tile("Best bucket", bucketSize(most.best_bucket_mb), "", `a step of ${time(most.best_step_us)}; the config has ${bucketSize(data.bucket_mb)}`).remove();
  tile("Memory", bytes(most.memory_bytes), "", "values of one rank, as planned").remove();
  stackedBar(part("step-parts"), `A step on ${many(most.ranks, "rank")}`, stepParts(most));
  const list = part("answers"), links = data.links;
  const rows = [["Measured", `${time(data.step_us)} per step on one rank, the median of ${many(data.steps, "step")} (${time(data.p10_us)} to ${time(data.p90_us)}, p10 to p90); ${data.machine}`],
                ["Batch", "every rank has the batch of the one that was measured, so the batch of all grows with the ranks"],
                ["Sums", `${links.sum}, ${many(links.ranks_per_machine, "rank")} a machine, on one queue beside backward`],
                ["Within a machine", linkWords(links.within)], ["Between machines", linkWords(links.between)],
                ["Warning", data.warning],
                ["Cores", data.shares_cores ? "ranks of a machine take all its cores, so sums take time from the step and nothing hides them" : null],
                ["Slowest rank", "the largest of as many draws from the measured steps, its median"]];
  for (const [label, text] of rows.filter(r => r[1])) {
    list.append("dt").text(label);
    list.append("dd").text(text);
  }
}

function byRanks() {
  const to = part("by-ranks");
  note(to, `Step = compute + packing + exposed + slowest, with buckets of ${bucketSize(data.bucket_mb)}. Packing: buckets are filled and emptied.`);
  plainTable(to, [
    {label: "ranks", show: p => p.ranks}, {label: "machines", show: p => p.machines}, {label: "step", show: p => time(p.step_us)},
    {label: "efficiency", show: p => percent(p.efficiency)}, {label: "samples/s", show: p => count(p.samples_per_s)},
    {label: "tokens/s", show: p => count(p.tokens_per_s)}, {label: "packing", show: p => time(p.packing_us)}, {label: "sums", show: p => time(p.sums_us)},
    {label: "exposed", show: p => time(p.exposed_us)}, {label: "hidden", show: p => percent(p.hidden_share)},
    {label: "slowest", show: p => time(p.slowest_us)}, {label: "best bucket", show: p => bucketSize(p.best_bucket_mb)},
    {label: "step with it", show: p => time(p.best_step_us)}, {label: "memory", show: p => bytes(p.memory_bytes)}], data.points);
}

function byBucket() {
  const to = part("by-bucket"), list = data.points.filter(p => p.by_bucket.length);
  if (!list.length) {
    to.remove();
    return;
  }
  const sizes = [...new Set([].concat(...list.map(p => p.by_bucket.map(b => b.mb))))].sort((a, b) => a - b);
  const of = (p, mb) => (p.by_bucket.find(b => b.mb === mb) || {}).step_us;
  note(to, "The step by the size of the buckets (dist.bucket_mb). Small ones start early and pay the latency often; large ones leave more to wait for behind backward.");
  plainTable(to, [{label: "ranks", show: p => p.ranks}].concat(sizes.map(mb => ({label: `${mb} MB`, show: p => time(of(p, mb))}))), list);
}
