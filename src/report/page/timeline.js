/* One step as it happened: a row per thread, a box per op. Drawn on a canvas, since a step can have tens of thousands. */
const LANE = 19, ROW_GAP = 8, AXIS = 22;
const timelineMinor = "--gap";

/* Events as objects, each with its lane: one below whatever encloses it on its track. */
function timelineRows() {
  const t = data.timeline;
  const events = t.events.map(e => ({track: e[0], start: e[1], us: e[2], end: e[1] + e[2], kind: e[3],
                                     op: e[4] >= 0 ? data.ops[e[4]] : null, name: nameOf(t.names[e[5]])}));
  return t.tracks.map(track => {
    const own = events.filter(e => e.track === track.track).sort((a, b) => a.start - b.start || b.us - a.us), open = [];
    for (const e of own) {
      while (open.length && open[open.length - 1].end <= e.start + 2e-3) open.pop();
      e.lane = open.length;
      open.push(e);
    }
    return {name: track.name, events: own, lanes: 1 + (d3.max(own, e => e.lane) || 0)};
  });
}

function timelineColor(event, mode) {
  if (event.op) return mode === "phase" ? phaseColor(event.op.phase) : kindColor(event.op.kind);
  if (event.kind === "phase") return phaseColor(event.name);
  return event.kind === "loader" ? "--low" : timelineMinor;
}

function timelineLegend(to, mode) {
  const items = mode === "phase"
    ? Array.from(new Set(data.ops.map(op => op.phase))).map(p => ({name: p, color: phaseColor(p)}))
    : families.slice(0, FAMILY_COLORS).map(f => ({name: f.name, color: kindColor(f.name)}))
      .concat(families.length > FAMILY_COLORS ? [{name: "other ops", color: "--other"}] : []);
  to.text("");
  if (data.timeline.events.some(e => e[3] === "loader")) items.push({name: "loader", color: "--low"});
  legend(to, items.concat([{name: "step, waiting", color: timelineMinor}]));
}

/* The state of the drawing; x maps µs to pixels at the present zoom. */
function makeTimeline(canvas, rows) {
  const view = {canvas, rows, mode: "phase", width: 0, height: 0, x: null, x0: null};
  let top = AXIS;
  for (const row of rows) {
    row.top = top;
    top += row.lanes * LANE + ROW_GAP;
  }
  view.height = top;
  return view;
}

const labelWidth = view => view.width < 500 ? 58 : 76;

function drawBoxes(view, ctx, row, paintOf) {
  const [left, right] = view.x.range(), drawn = new Map();        /* lane: right edge of what is drawn there */
  for (const e of row.events) {
    const a = Math.max(left, view.x(e.start)), b = Math.min(right, view.x(e.end));
    if (b < left || a > right || b < (drawn.get(e.lane) || -1) + 0.4) continue;
    const y = row.top + e.lane * LANE, w = Math.max(0.7, b - a - (b - a > 3 ? 1 : 0));
    drawn.set(e.lane, b);
    ctx.fillStyle = paintOf(timelineColor(e, view.mode));
    ctx.fillRect(a, y, w, LANE - 2);
    if (w > 34) {
      ctx.fillStyle = e.op || e.kind === "phase" || e.kind === "loader" ? paintOf("--on") : paintOf("--ink");
      ctx.fillText(e.name.slice(0, Math.floor((w - 6) / 6.2)), a + 4, y + LANE / 2, w - 6);
    }
  }
}

function drawTicks(view, ctx, paintOf) {
  const ticks = view.x.ticks(Math.max(2, view.width / 120)), apart_ms = (ticks[1] - ticks[0]) / 1000 || 1;
  const digits = Math.max(0, -Math.floor(Math.log10(apart_ms)));
  for (const tick of ticks) {
    ctx.fillStyle = paintOf("--line");
    ctx.fillRect(view.x(tick), AXIS - 4, 1, view.height);
    ctx.fillStyle = paintOf("--muted");
    if (view.x(tick) < view.width - 50) ctx.fillText((tick / 1000).toFixed(digits) + " ms", view.x(tick) + 3, AXIS / 2);
  }
}

function drawTimeline(view) {
  const ratio = devicePixelRatio || 1, ctx = view.canvas.getContext("2d"), cache = new Map();
  const paintOf = v => cache.get(v) || cache.set(v, resolved(v)).get(v);
  view.canvas.width = view.width * ratio;
  view.canvas.height = view.height * ratio;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = paintOf("--card");
  ctx.fillRect(0, 0, view.width, view.height);
  ctx.font = "11px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  drawTicks(view, ctx, paintOf);
  for (const row of view.rows) {
    drawBoxes(view, ctx, row, paintOf);
    ctx.fillStyle = paintOf("--card");
    ctx.fillRect(0, row.top, labelWidth(view) - 2, row.lanes * LANE);
    ctx.fillStyle = paintOf("--muted");
    ctx.fillText(row.name, 6, row.top + LANE / 2);
  }
}

function timelineAt(view, px, py) {
  const row = view.rows.find(r => py >= r.top && py < r.top + r.lanes * LANE);
  if (!row || px < labelWidth(view)) return null;
  const lane = Math.floor((py - row.top) / LANE), at = view.x.invert(px), slack = view.x.invert(px + 1) - at;
  const own = row.events.filter(e => e.lane === lane);
  const i = d3.bisector(e => e.start).right(own, at) - 1;
  return [own[i], own[i + 1]].find(e => e && e.start - slack <= at && e.end + slack >= at) || null;
}

function timelineTip(view) {
  const [px, py] = d3.mouse(view.canvas), e = timelineAt(view, px, py);
  if (!e) {
    hideTip();
    return;
  }
  const rows = [["starts at", time(e.start)], ["takes", time(e.us)]];
  if (e.op) rows.push(["kind", nameOf(e.op.kind)], ["phase", e.op.phase], ["self time, all steps", time(e.op.self_us)],
                      ["roofline efficiency", percent(e.op.efficiency)]);
  showTip(e.name, rows, pointer());
}

/* Drag moves, the wheel with Ctrl zooms (alone it scrolls the page), keys and buttons do both. */
function timelineZoom(view, redraw) {
  const target = d3.select(view.canvas);
  const zoom = d3.zoom().scaleExtent([1, 5000]).filter(() => {
    const e = d3.event;
    if (e.type === "wheel") return e.ctrlKey || e.metaKey;
    if (e.type === "touchstart") return e.touches.length > 1 || d3.zoomTransform(view.canvas).k > 1;
    return !e.button;
  }).on("zoom", redraw);
  target.call(zoom).style("touch-action", "pan-y").on("keydown", () => {
    const key = d3.event.key, step = view.width / 5 / d3.zoomTransform(view.canvas).k;
    if (key === "ArrowLeft") zoom.translateBy(target, step, 0);
    else if (key === "ArrowRight") zoom.translateBy(target, -step, 0);
    else if (key === "+" || key === "=") zoom.scaleBy(target, 1.5);
    else if (key === "-") zoom.scaleBy(target, 1 / 1.5);
    else if (key === "0") zoom.transform(target, d3.zoomIdentity);
    else return;
    d3.event.preventDefault();
  });
  return {
    by: k => zoom.scaleBy(target, k), all: () => zoom.transform(target, d3.zoomIdentity),
    size: () => zoom.extent([[labelWidth(view), 0], [view.width, view.height]])
      .translateExtent([[labelWidth(view), 0], [view.width, view.height]]),
  };
}

function timeline() {
  const to = part("timeline"), t = data.timeline;
  if (!t.events.length) {
    note(to, "No events were recorded.");
    return;
  }
  note(to, `Step ${t.step}, the one of median length: ${time(t.us)}. Drag to move; Ctrl and wheel, the buttons or + and − ` +
    "zoom. trace.json has every recorded step and opens in Perfetto." +
    (t.left_out ? ` The ${t.left_out} shortest events are left out here.` : ""));
  const controls = to.append("div").attr("class", "controls"), legendBox = to.append("div"), box = to.append("div");
  const canvas = box.append("canvas").attr("tabindex", 0).attr("role", "img")
    .attr("aria-label", `Timeline of ${t.events.length} events on ${t.tracks.length} rows; ` +
      "arrow keys move, plus and minus zoom, 0 shows all");
  const view = makeTimeline(canvas.node(), timelineRows());
  canvas.style("height", view.height + "px");
  const redraw = () => {
    view.x = d3.zoomTransform(view.canvas).rescaleX(view.x0);
    drawTimeline(view);
  };
  const zoom = timelineZoom(view, redraw);
  choose(controls, "Colour", [["phase", "By phase"], ["kind", "By kind"]], view.mode, mode => {
    view.mode = mode;
    timelineLegend(legendBox, mode);
    redraw();
  });
  const buttons = controls.append("span").attr("class", "buttons").attr("role", "group").attr("aria-label", "Zoom");
  for (const [text, label, act] of [["−", "Zoom out", () => zoom.by(1 / 2)], ["+", "Zoom in", () => zoom.by(2)],
                                    ["Whole step", "Whole step", zoom.all]])
    buttons.append("button").attr("type", "button").attr("aria-label", label).text(text).on("click", act);
  timelineLegend(legendBox, view.mode);
  canvas.on("mousemove", () => timelineTip(view)).on("mouseleave", hideTip);
  whenSized(box.node(), width => {
    view.width = width;
    view.x0 = d3.scaleLinear().domain([0, t.us || 1]).range([labelWidth(view), width - 4]);
    zoom.size();
    zoom.all();
    redraw();
  });
  themeChanged.push(redraw);
}
