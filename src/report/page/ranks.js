/* The ranks of a profile beside each other: what each does in a step, and who waits for whom. */
function ranks() {
  const to = part("ranks");
  if (data.ranks.length < 2) {
    to.remove();
    return;
  }
  const late = data.ranks.find(r => r.straggler);
  note(to, "Per step, the mean of the middle half of the steps; all else on this page is of rank 0. Exposed: sums that every rank waits for, so that nothing hides them. " +
    "Wait: for ranks that are later with the step. Sums: hidden or not; hidden: of their bytes, those that travelled behind backward." + (late ? ` Rank ${late.rank} is later than the others, and they wait for it.` : ""));
  const column = (key, label, show, more) => Object.assign({key, label, show: r => show(r[key])}, more);
  sortableTable(to, {views: {all: {rows: data.ranks, columns: [
    textColumn("rank", "rank", r => r.rank + (r.straggler ? " (straggler)" : "")), column("step_us", "step", time),
    column("compute_us", "compute", time, {bar: true}), column("loader_us", "loader", time), column("exposed_comm_us", "exposed", time),
    column("wait_us", "waits for others", time, {bar: true}), column("sums_us", "sums", time), column("hidden_share", "hidden", percent), column("busy", "busy", percent),
    column("memory_bytes", "memory", bytes), column("delayed_share", "without a core", percent), textColumn("host", "machine")]}},
    sort: "compute_us", search: r => [String(r.rank), r.host], placeholder: "filter: rank or machine", label: "Filter the ranks",
    summary: () => ""});
}
