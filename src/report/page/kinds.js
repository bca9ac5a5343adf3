/* The kinds of ops of a profile: their colours, and what a tooltip says of an op. */

/* An op and its gradient are of one family and share a colour; the families with the most time have colours of their own. */
const FAMILY_COLORS = 8;
const familyOf = kind => nameOf(kind).replace(/_grad$/, "");
const families = d3.nest().key(k => familyOf(k.kind)).rollup(list => d3.sum(list, k => k.self_us)).entries(data.kinds)
  .map(f => ({name: f.key, us: f.value})).sort((a, b) => d3.descending(a.us, b.us));
const familyRank = new Map(families.map((f, i) => [f.name, i]));
const phaseColors = {data: "--c4", forward: "--c0", backward: "--c1", optimize: "--c2", optimizer: "--c2",
                     communicate: "--c3", communication: "--c3", evaluation: "--c7"};
const hasColor = kind => familyRank.get(familyOf(kind)) < FAMILY_COLORS;
const kindColor = kind => hasColor(kind) ? "--c" + familyRank.get(familyOf(kind)) : "--other";
const kindGroup = kind => hasColor(kind) ? familyOf(kind) : "other ops";
const phaseColor = phase => phaseColors[phase] || "--other";

function opRows(op) {
  return [["kind", nameOf(op.kind)], ["part", nameOf(op.part)], ["target", op.target || "–"],
          ["phase", op.phase + (op.phase === "forward" && op.backward_share > 0 ? `, ${percent(op.backward_share)} of it gradients` : "")], ["layer", op.layer === null ? "outside the blocks" : op.layer],
          ["self time", time(op.self_us)], ["share of the step", percent(op.share)], ["roofline floor", time(op.floor_us)],
          ["roofline efficiency", percent(op.efficiency)], ["bound by", op.memory_bound ? `traffic, ${op.level}` : "compute"],
          ["FLOP", count(op.flops)], ["bytes", bytes(op.bytes)], ["FLOP/byte", plainNumber(op.intensity)],
          ["GFLOP/s", plainNumber(op.gflops_per_s)], ["GB/s", plainNumber(op.gb_per_s)],
          ["then waited for others", time(op.imbalance_us)], ["kernel", nameOf(op.kernel)], ["made by", nameOf(op.made_by)]];
}
