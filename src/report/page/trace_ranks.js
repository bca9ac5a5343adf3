/* The ranks of a job beside each other: who is slow, and who waits for whom. */
function ranks() {
  const to = part("ranks");
  if (data.ranks.length < 2) {
    absent("ranks");
    return;
  }
  const least = d3.min(data.ranks, r => r.wait_us), most = d3.max(data.ranks, r => r.wait_us);
  const found = data.findings.find(f => f.rule === "straggler"), lowest = most > 0 && data.ranks.find(r => r.wait_us === least);
  note(to, "Per step. In collectives the fast ranks wait for the slow ones: who waits least holds the others up." +
    (found ? ` Here that is ${found.where}; others wait up to ${time(most)} per step.`
           : lowest ? ` Here ${lowest.name} waits least, by no more than ranks differ from step to step.` : ""));
  const onDevice = data.ranks.some(r => r.kernel_us > 0 || r.idle_us > 0);
  sortableTable(to, {views: {all: {rows: data.ranks, columns: [
    textColumn("rank", "rank", r => (known(r.rank) ? r.rank : r.name) + (r.straggler ? " (straggler)" : "")), numberColumn("step_us", "step", time, {bar: true}),
    ...(onDevice ? [numberColumn("kernel_us", "kernels", time)] : []), numberColumn("comm_us", "communication", time),
    numberColumn("exposed_comm_us", "exposed", time), numberColumn("wait_us", "waits for others", time, {bar: true}),
    ...(onDevice ? [numberColumn("idle_us", "GPU idle", time)] : []), numberColumn("host_us", "host work", time),
    numberColumn("steps", "steps", String), textColumn("path", "file")]}},
    sort: "step_us", search: r => [r.name, r.path], placeholder: "filter: rank or file", label: "Filter the ranks",
    summary: () => ""});
}
