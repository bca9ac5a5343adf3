/* The parts of a step of an imported trace and the kinds of its kernels, with their colours. */
const stepParts = [
  {key: "kernel_us", name: "kernel", color: "--c0"}, {key: "memcpy_us", name: "copy", color: "--c1"},
  {key: "memset_us", name: "fill", color: "--c4"}, {key: "comm_us", name: "communication", color: "--c3"},
  {key: "runtime_us", name: "runtime call", color: "--c5"}, {key: "dataloader_us", name: "data loader", color: "--c6"},
  {key: "cpu_us", name: "CPU op", color: "--c2"}, {key: "other_us", name: "other", color: "--gap", hatched: true},
];

/* The phases of an iteration, in the colours of a profile. */
const phaseColors = {data: "--c4", forward: "--c0", backward: "--c1", optimizer: "--c2", evaluation: "--c7", communication: "--c3"};

/* The kinds with the most time have colours of their own. */
const KIND_COLORS = 8;
const kindRank = new Map(data.kinds.map((k, i) => [k.name, i]));
const kernelColor = kind => kindRank.get(kind) < KIND_COLORS ? "--c" + kindRank.get(kind) : "--other";
const restOfKinds = d3.sum(data.kinds.slice(KIND_COLORS), k => k.us);

const absent = id => part(id).remove();
